package x509_v2

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is Salt's "x509".
var Module = &states.Module{Name: "x509_v2", Virtual: "x509", Doc: "Certificates, requests, revocation lists and keys in files.", Funcs: []states.Def{
	{Name: "certificate_managed", Doc: certificateDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "days_remaining", Optional: true}, {Name: "ca_server", Optional: true}, {Name: "signing_policy", Optional: true},
		{Name: "encoding", Default: "pem"}, {Name: "append_certs", Optional: true}, {Name: "digest", Default: "sha256"},
		{Name: "signing_private_key", Optional: true}, {Name: "signing_private_key_passphrase", Optional: true, Secret: true},
		{Name: "signing_cert", Optional: true}, {Name: "public_key", Optional: true}, {Name: "private_key", Optional: true},
		{Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "csr", Optional: true}, {Name: "subject", Optional: true},
		{Name: "serial_number", Optional: true}, {Name: "not_before", Optional: true}, {Name: "not_after", Optional: true},
		{Name: "days_valid", Optional: true}, {Name: "pkcs12_passphrase", Optional: true, Secret: true},
		{Name: "pkcs12_encryption_compat", Default: false}, {Name: "pkcs12_friendlyname", Optional: true},
	}, Kwargs: "kwargs", Run: certificateManaged},
	{Name: "crl_managed", Doc: crlDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "signing_private_key"}, {Name: "revoked"}, {Name: "days_remaining", Optional: true}, {Name: "signing_cert", Optional: true},
		{Name: "signing_private_key_passphrase", Optional: true, Secret: true}, {Name: "include_expired", Default: false},
		{Name: "days_valid", Optional: true}, {Name: "digest", Default: "sha256"}, {Name: "encoding", Default: "pem"}, {Name: "extensions", Optional: true},
	}, Kwargs: "kwargs", Run: crlManaged},
	{Name: "csr_managed", Doc: csrDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "private_key"}, {Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "digest", Default: "sha256"},
		{Name: "encoding", Default: "pem"}, {Name: "subject", Optional: true},
	}, Kwargs: "kwargs", Run: csrManaged},
	{Name: "pem_managed", Doc: pemDoc, Params: []modules.Param{{Name: "name"}, {Name: "text"}}, Kwargs: "kwargs", Run: pemManaged},
	{Name: "private_key_managed", Doc: keyDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "algo", Default: "rsa"}, {Name: "keysize", Optional: true}, {Name: "passphrase", Optional: true, Secret: true},
		{Name: "encoding", Default: "pem"}, {Name: "new", Default: false}, {Name: "overwrite", Default: false},
		{Name: "pkcs12_encryption_compat", Default: false},
	}, Kwargs: "kwargs", Run: privateKeyManaged},
}}

const (
	certificateDoc = `Keep a certificate in a file. It is made again when it is not what the arguments say, or ends soon.

The keyword arguments are parts of the subject and extensions, as x509.create_certificate knows them, and those of file.managed that
are about owner, mode, directories, backups and links.

name
    the file
days_remaining
    make it again when it ends in less than so many days: 90 if nothing is said
ca_server
    the minion that signs
signing_policy
    the signing policy to follow
encoding
    how to write it: pem, der
append_certs
    further certificates to put behind it
digest
    the digest that is signed
signing_private_key, signing_private_key_passphrase, signing_cert
    the key that signs, and its certificate; a certificate signs itself if there is none
public_key, private_key, private_key_passphrase, csr
    where the public key of the certificate comes from
subject
    the subject, as a text, a list or a dictionary
serial_number, not_before, not_after, days_valid
    its number, and from when to when it is valid
pkcs12_passphrase, pkcs12_encryption_compat, pkcs12_friendlyname
    for the encoding pkcs12`
	crlDoc = `Keep a list of revoked certificates in a file. It is made again when it is not what the arguments say, or ends soon.

name
    the file
signing_private_key, signing_private_key_passphrase, signing_cert
    the key that signs, and its certificate
revoked
    a list of what is revoked: certificate or serial_number, not_after, revocation_date, extensions
days_remaining
    make it again when it ends in less than so many days: 30 if nothing is said
include_expired
    whether to list what has expired already
days_valid
    how many days it is valid
digest
    the digest that is signed
encoding
    how to write it: pem, der
extensions
    the extensions of the list; a cRLNumber of auto counts by itself`
	csrDoc = `Keep a certificate signing request in a file. It is made again when it is not what the arguments say.

name
    the file
private_key, private_key_passphrase
    the key that the request is for
digest
    the digest that is signed
encoding
    how to write it: pem, der
subject
    the subject, as a text, a list or a dictionary`
	pemDoc = `Keep a PEM entry in a file, in good form.

name
    the file
text
    the entry, or the file that has it`
	keyDoc = `Keep a private key in a file. It is made again when it is of another kind or size.

name
    the file
algo
    the kind: rsa, ec, ed25519
keysize
    its size in bits
passphrase
    what it is encrypted with
encoding
    how to write it: pem, der
new
    make a new one each time
overwrite
    replace what cannot be read
pkcs12_encryption_compat
    for the encoding pkcs12`
)
