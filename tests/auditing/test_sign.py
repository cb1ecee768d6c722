"""A signed dossier carries a signature that covers all of it, by a certificate made for the test."""

import datetime
import io

import pytest

from countervail.core.errors import DataNotFoundError, ParameterError

pytest.importorskip("pyhanko")

from asn1crypto import x509 as der
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko_certvalidator import ValidationContext


@pytest.fixture(scope="module")
def officer(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "An officer")])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.KeyUsage(True, True, False, False, False, False, False, False, False)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    locked = serialization.BestAvailableEncryption(b"secret")
    path = tmp_path_factory.mktemp("sign") / "officer.p12"
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"officer", key, made, None, locked))
    return path, made


def test_a_signed_dossier_is_whole_and_a_changed_one_is_not(rejected, officer, tmp_path):
    path, certificate = officer
    rejected.to_pdf(tmp_path / "d.pdf", certificate=path, password="secret")
    paper = (tmp_path / "d.pdf").read_bytes()
    root = der.Certificate.load(certificate.public_bytes(serialization.Encoding.DER))
    trusting = ValidationContext(trust_roots=[root], allow_fetching=False)

    def status(text):
        [signature] = PdfFileReader(io.BytesIO(text)).embedded_signatures
        return validate_pdf_signature(signature, trusting)

    assert status(paper).bottom_line
    place = paper.index(b"/Title")
    assert not status(paper[:place] + b"/TitlE" + paper[place + 6 :]).intact


def test_a_wrong_password_or_no_certificate_is_said(rejected, officer, tmp_path):
    with pytest.raises(ParameterError, match="password is wrong"):
        rejected.to_pdf(tmp_path / "d.pdf", certificate=officer[0], password="guess")
    with pytest.raises(DataNotFoundError, match="PKCS"):
        rejected.to_pdf(tmp_path / "d.pdf", certificate=tmp_path / "none.p12")
    assert not (tmp_path / "d.pdf").exists()
