"""Dossiers that are signed: a digital signature in the PDF, by somebody's own certificate."""

from __future__ import annotations

import io
from pathlib import Path

from countervail.core.errors import DataNotFoundError, ParameterError

_EXTRA = "Signing needs pyHanko. Install the extra: pip install 'countervail[sign]'."


def signed(paper: bytes, certificate: str | Path, password: str | None, reason: str) -> bytes:
    """A PDF with a signature by the key in a PKCS #12 file (.p12, .pfx)."""
    path = Path(certificate)
    if not path.is_file():
        raise DataNotFoundError(f"No certificate '{path.name}'. Give a PKCS #12 file (.p12 or .pfx) with its key.")
    try:
        from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
        from pyhanko.sign import PdfSignatureMetadata, SimpleSigner, sign_pdf
    except ImportError:
        raise ParameterError(_EXTRA) from None
    signer = SimpleSigner.load_pkcs12(str(path), passphrase=None if password is None else password.encode())
    if signer is None:
        raise ParameterError(
            f"The certificate '{path.name}' could not be opened: the password is wrong, or it is no PKCS #12 file."
        )
    about = PdfSignatureMetadata(field_name="Signature", reason=reason)
    made: bytes = sign_pdf(IncrementalPdfFileWriter(io.BytesIO(paper)), about, signer=signer).getbuffer().tobytes()
    return made
