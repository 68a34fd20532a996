"""Certificates, for servers of tests that speak TLS."""

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Certificate(NamedTuple):
    """Files: what clients trust, what a server shows, and its key."""

    authority: Path
    shown: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    """A certificate of this machine, of an authority that nobody else trusts."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority, machine = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("tests", "host"))
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)

    def begun(subject: x509.Name, of: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        whole = x509.CertificateBuilder().subject_name(subject).issuer_name(authority).public_key(of.public_key())
        from_to = now - datetime.timedelta(days=1), now + datetime.timedelta(days=1)
        return whole.serial_number(x509.random_serial_number()).not_valid_before(from_to[0]).not_valid_after(from_to[1])

    root = begun(authority, authority_key).add_extension(x509.BasicConstraints(True, None), critical=True)
    leaf = begun(machine, key).add_extension(x509.SubjectAlternativeName(names), critical=False)
    found = Certificate(folder / "authority.pem", folder / "cert.pem", folder / "key.pem")
    for file, made in ((found.authority, root), (found.shown, leaf)):
        file.write_bytes(made.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    found.key.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return found
