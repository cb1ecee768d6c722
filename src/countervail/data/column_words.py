"""Words in the names of columns, in five languages: what they suggest about the people in a table.

A word with a star stands for all that begin with it, or end with it: German and Dutch write words together. Names are
compared without accents, by the words they consist of.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

_WORDS: dict[str, dict[str, str]] = {
    "target": {
        "en": "decision approved granted outcome",
        "de": "entscheidung bewilligt genehmigt zugesagt",
        "fr": "decision accorde approuve",
        "es": "decision aprobado concedido",
        "nl": "beslissing besluit goedgekeurd toegekend",
    },
    "direct": {
        "en": "id uuid guid ssn name person surname forename firstname lastname fullname initials email mail phone* "
        "tel telephone mobile cell iban bic passport account cardno license* licence* plate patientno customerno "
        "recordno nin username login ip",
        "de": "kennung personalnummer personalnr kundennummer kundennr patientennummer versicherungsnummer "
        "steuernummer steuerid ausweis* reisepass vorname nachname familienname zuname rufname telefon* handy* "
        "mobilnummer konto kontonummer kontonr kennzeichen matrikel* emailadresse bearbeiter* sachbearbeiter*",
        "fr": "identifiant nom prenom patronyme courriel mel telephone portable compte passeport immatriculation "
        "matricule numclient nir",
        "es": "identificador nombre* apellido* correo telefono* movil celular cuenta pasaporte matricula dni nie nif "
        "usuario",
        "nl": "naam voornaam achternaam familienaam telefoon* mobiel* gsm rekening* paspoort kenteken klantnummer "
        "patientnummer bsn rijksregister* emailadres gebruiker*",
    },
    "quasi": {
        "en": "age birth* born dob sex gender race ethnic* nationality native country city town domicile zip zipcode "
        "postcode postalcode postal region county state address street marital* married marry marriage civil "
        "civilstatus personalstatus relationship education* educ* occupation job profession employment housing "
        "property residence foreign* religion language children dependents date day admission admitted discharge* "
        "height weight",
        "de": "alter geburt* geboren geb geschlecht ethni* herkunft nationalitat staatsangehorig* staatsburger* land "
        "stadt ort wohnort gemeinde plz postleitzahl region kreis landkreis bundesland adresse anschrift strasse "
        "hausnummer familienstand bildung* schulabschluss abschluss beruf* tatigkeit beschaftigung wohn* religion "
        "konfession sprache kinder datum aufnahme* entlassung* grosse gewicht",
        "fr": "age naissance nele sexe genre ethni* nationalite pays ville commune domicile cp codepostal region "
        "departement adresse rue matrimonial* etatcivil situationfamiliale education etudes diplome profession metier "
        "emploi logement religion langue enfants date admission sortie taille poids",
        "es": "edad nacimiento nacido sexo genero etnia raza nacionalidad pais ciudad municipio domicilio cp "
        "codigopostal region provincia direccion calle estadocivil educacion estudios profesion ocupacion empleo "
        "vivienda religion idioma hijos fecha ingreso* alta altura peso",
        "nl": "leeftijd geboorte* geboren geslacht etni* herkomst nationaliteit land stad woonplaats gemeente postcode "
        "regio provincie adres straat huisnummer burgerlijke* burgerlijkestaat opleiding* onderwijs beroep* baan werk "
        "woning religie geloof taal kinderen datum opname* ontslag* lengte gewicht",
    },
    "sensitive": {
        "en": "disease diagnos* icd comorbid* hiv health illness medication drug* crime conviction debt* wage* "
        "salary income disab* genetic* sexual* politic* union",
        "de": "krankheit* *krankheit *erkrankung *erkrankungen diagnose* *diagnose *befund gesundheit* medikament* "
        "droge* straftat* verurteil* *schulden *lohn *gehalt *einkommen *behinderung genetisch* sexuell* politi* "
        "gewerkschaft*",
        "fr": "maladie diagnostic sante drogue* crime condamnation dette* salaire revenu* sexuel* politi* syndicat",
        "es": "enfermedad diagnostico salud droga* delito condena deuda* salario sueldo ingresos renta sexual* politi* "
        "sindicato",
        "nl": "ziekte* *ziekte *aandoening diagnose* *diagnose gezondheid* drug* misdrijf veroordeling schuld* "
        "*schulden *loon *salaris *inkomen genetisch* seksue* politi* vakbond*",
    },
    "fixed": {
        "en": "sex gender race ethnic* caste birth* born dob nationality citizen* native foreign* origin disab*",
        "de": "geschlecht ethni* geburt* geboren herkunft nationalitat staatsangehorig* staatsburger* behinder*",
        "fr": "sexe genre ethni* naissance nationalite origine handicap*",
        "es": "sexo genero etnia raza nacimiento nacionalidad origen discapac*",
        "nl": "geslacht etni* geboorte* geboren nationaliteit herkomst handicap*",
    },
    "family": {
        "en": "marital* marriage married marry civilstatus personalstatus familystatus relationship spouse child "
        "children dependent dependents pregnan* religion faith sexual*",
        "de": "familienstand ehe* verheiratet partner* kind kinder schwanger* religion konfession sexuell*",
        "fr": "matrimonial* etatcivil situationfamiliale conjoint enfant enfants enceinte grossesse religion sexuel*",
        "es": "estadocivil conyuge hijo hijos embaraz* religion sexual*",
        "nl": "burgerlijkestaat partner* kind kinderen zwanger* religie geloof seksue*",
    },
    "numbered": {
        "en": "no nr num number reference ref",
        "de": "nr nummer *nummer referenz",
        "fr": "no num numero reference",
        "es": "num numero referencia",
        "nl": "nr nummer *nummer referentie",
    },
    "remarks": {
        "en": "remark* comment* note notes memo freetext description",
        "de": "bemerkung* anmerkung* notiz* kommentar* freitext beschreibung",
        "fr": "remarque* commentaire* note notes",
        "es": "observacion* comentario* nota notas",
        "nl": "opmerking* notitie* toelichting omschrijving",
    },
    "past": {
        "en": "history ever past prior priors previous* juvenile juv",
        "de": "vorgeschichte vorstrafe* fruher* bisher*",
        "fr": "historique antecedent*",
        "es": "historial antecedente*",
        "nl": "geschiedenis voorgeschiedenis verleden eerder*",
    },
    "older": {"en": "age", "de": "alter", "fr": "age", "es": "edad", "nl": "leeftijd"},
    "code": {
        "en": "zip zipcode postcode postalcode postal code codes area sic naics icd",
        "de": "plz postleitzahl kennziffer gemeindeschlussel schlussel code vorwahl",
        "fr": "cp codepostal postal code insee",
        "es": "cp codigopostal postal codigo",
        "nl": "postcode code wijk buurtcode",
    },
    "birth": {
        "en": "birth* born dob",
        "de": "geburt* geboren geb",
        "fr": "naissance nele",
        "es": "nacimiento nacido",
        "nl": "geboorte* geboren",
    },
    "money": {
        "en": "income wage wages salary amount price debt debts loan credit balance bill payment payments gain loss "
        "rent savings premium revenue limit dollars euros usd eur",
        "de": "*einkommen *lohn *gehalt *betrag *preis *schulden kredit kreditsumme darlehen saldo rechnung "
        "zahlung* miete pramie umsatz",
        "fr": "revenu revenus salaire montant prix dette dettes pret solde facture paiement* loyer prime",
        "es": "ingresos salario sueldo importe precio deuda deudas prestamo saldo factura pago pagos renta alquiler",
        "nl": "*inkomen *loon *salaris *bedrag *prijs schuld *schulden lening saldo rekening betaling* huur "
        "premie omzet",
    },
    "hours": {"en": "hours hour", "de": "stunden arbeitsstunden", "fr": "heures", "es": "horas", "nl": "uren"},
    "months": {
        "en": "months duration term tenure",
        "de": "monate laufzeit dauer",
        "fr": "mois duree",
        "es": "meses plazo duracion",
        "nl": "maanden looptijd duur",
    },
}


def suggests(name: str, what: str) -> bool:
    """Whether the name of a column has a word for something, in any of the languages.

    Examples
    --------
    >>> suggests("Geburtsdatum", "quasi"), suggests("code_postal", "quasi"), suggests("agent", "quasi")
    (True, True, False)
    """
    words = _words(name)
    # Two words that are one elsewhere: "post code", "état civil".
    return any(_PATTERNS[what].fullmatch(w) for w in [*words, *map("".join, pairwise(words))])


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("ß", "ss"))
    bare = "".join(c for c in plain if not unicodedata.combining(c))
    return [w for w in re.split(r"[\W_\d]+", bare.casefold()) if w]


def _pattern(languages: dict[str, str]) -> re.Pattern[str]:
    words = {w for text in languages.values() for w in text.split()}
    return re.compile("|".join(re.escape(w).replace(r"\*", r"\w*") for w in sorted(words)))


_PATTERNS = {what: _pattern(languages) for what, languages in _WORDS.items()}
