package x509_v2

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "x509".
var Module = &modules.Module{Name: "x509_v2", Virtual: "x509", Doc: "Certificates, requests, revocation lists and keys.", Funcs: []modules.Def{
	{Name: "create_certificate", Doc: `Make a certificate and return it, or write it to a file.

The keyword arguments say what is in it: signing_private_key, signing_private_key_passphrase, signing_cert, public_key, private_key,
private_key_passphrase, csr, subject, serial_number, not_before, not_after, days_valid, digest, copypath, prepend_cn; parts of the
subject (C, ST, L, STREET, O, OU, CN, MAIL, SN, GN, UID, SERIALNUMBER), and extensions by their names (basicConstraints, …).

ca_server
    The minion that signs.
signing_policy
    The signing policy to follow.
` + encodingDoc + `append_certs
    Further certificates to put behind it.
` + pathDoc + `overwrite
    Whether to write a file that is there.
` + rawDoc,
		Example: "salt '*' x509.create_certificate signing_private_key=/etc/pki/ca.key signing_cert=/etc/pki/ca.crt private_key=/etc/pki/web.key CN=www.example.com days_valid=90", Params: certificateParams, Kwargs: "kwargs", Run: createCertificate},
	{Name: "create_certificate_ssh", Doc: "Make a certificate, as create_certificate does. It is the name that salt-ssh has for it.", Example: "salt '*' x509.create_certificate_ssh signing_private_key=/etc/pki/ca.key signing_cert=/etc/pki/ca.crt private_key=/etc/pki/web.key CN=www.example.com", Params: certificateParams, Kwargs: "kwargs", Run: createCertificate},
	{Name: "create_crl", Doc: `Make a list of revoked certificates and return it, or write it to a file.

signing_private_key
    The key that signs.
revoked
    A list of what is revoked: certificate or serial_number, not_after, revocation_date, extensions.
signing_cert
    The certificate of the key that signs.
signing_private_key_passphrase
    The passphrase of that key.
include_expired
    Whether to list what has expired already.
days_valid
    How many days it is valid.
digest
    The digest that is signed.
` + encodingDoc + `extensions
    The extensions of the list.
` + pathDoc + rawDoc,
		Example: `salt '*' x509.create_crl signing_private_key=/etc/pki/ca.key signing_cert=/etc/pki/ca.crt revoked="[{'certificate': '/etc/pki/web.crt'}]"`, Params: []modules.Param{
			{Name: "signing_private_key"}, {Name: "revoked"}, {Name: "signing_cert"},
			{Name: "signing_private_key_passphrase", Optional: true, Secret: true}, {Name: "include_expired", Default: false},
			{Name: "days_valid", Optional: true}, {Name: "digest", Default: "sha256"}, {Name: "encoding", Default: "pem"},
			{Name: "extensions", Optional: true}, pathParam, {Name: "raw", Default: false},
		}, Kwargs: "kwargs", Run: createCrl},
	{Name: "create_csr", Doc: `Make a certificate request and return it, or write it to a file.

The keyword arguments are parts of the subject and extensions, as for create_certificate.

private_key_passphrase
    The passphrase of the private key.
digest
    The digest that is signed.
` + encodingDoc + pathDoc + rawDoc,
		Example: "salt '*' x509.create_csr private_key=/etc/pki/web.key CN=www.example.com", Params: []modules.Param{
			{Name: "private_key"}, {Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "digest", Default: "sha256"},
			{Name: "encoding", Default: "pem"}, pathParam, {Name: "raw", Default: false},
		}, Kwargs: "kwargs", Run: createCsr},
	{Name: "create_private_key", Doc: `Make a private key and return it, or write it to a file.

algo
    The kind of key: rsa, ec, ed25519.
keysize
    Its size in bits.
` + passphraseDoc + encodingDoc + pathDoc + rawDoc,
		Example: "salt '*' x509.create_private_key algo=ec path=/etc/pki/web.key", Params: []modules.Param{
			{Name: "algo", Default: "rsa"}, {Name: "keysize", Optional: true}, passphraseParam, {Name: "encoding", Default: "pem"},
			{Name: "pkcs12_encryption_compat", Default: false}, pathParam, {Name: "raw", Default: false},
		}, Kwargs: "kwargs", Run: createPrivateKey},
	{Name: "encode_certificate", Doc: `Return a certificate in another encoding.

` + encodingDoc + `append_certs
    Further certificates to put behind it.
private_key_passphrase
    The passphrase of the private key.
` + rawDoc,
		Example: "salt '*' x509.encode_certificate /etc/pki/web.crt encoding=der", Params: []modules.Param{
			{Name: "certificate"}, {Name: "encoding", Default: "pem"}, {Name: "append_certs", Optional: true},
			{Name: "private_key", Optional: true}, {Name: "private_key_passphrase", Optional: true, Secret: true},
			{Name: "pkcs12_passphrase", Optional: true, Secret: true}, {Name: "pkcs12_encryption_compat", Default: false},
			{Name: "pkcs12_friendlyname", Optional: true}, {Name: "raw", Default: false},
		}, Run: encodeCertificate},
	{Name: "encode_crl", Doc: `Return a list of revoked certificates in another encoding.

` + encodingDoc + rawDoc,
		Example: "salt '*' x509.encode_crl /etc/pki/ca.crl encoding=der", Params: []modules.Param{{Name: "crl"}, {Name: "encoding", Default: "pem"}, {Name: "raw", Default: false}}, Run: encodeCrl},
	{Name: "encode_csr", Doc: `Return a certificate request in another encoding.

` + encodingDoc + rawDoc,
		Example: "salt '*' x509.encode_csr /etc/pki/web.csr encoding=der", Params: []modules.Param{{Name: "csr"}, {Name: "encoding", Default: "pem"}, {Name: "raw", Default: false}}, Run: encodeCsr},
	{Name: "encode_private_key", Doc: `Return a private key in another encoding.

` + encodingDoc + passphraseDoc + `private_key_passphrase
    The passphrase of the private key.
` + rawDoc,
		Example: "salt '*' x509.encode_private_key /etc/pki/web.key encoding=der", Params: []modules.Param{
			{Name: "private_key"}, {Name: "encoding", Default: "pem"}, passphraseParam,
			{Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "pkcs12_encryption_compat", Default: false},
			{Name: "raw", Default: false},
		}, Run: encodePrivateKey},
	{Name: "expired", Doc: "Tell whether a certificate has expired.", Example: "salt '*' x509.expired /etc/pki/web.crt", Params: []modules.Param{{Name: "certificate"}}, Run: expired},
	{Name: "expires", Doc: "Tell whether a certificate will have expired in some days.", Example: "salt '*' x509.expires /etc/pki/web.crt days=7", Params: []modules.Param{{Name: "certificate"}, {Name: "days", Default: int64(0)}}, Run: expires},
	{Name: "get_pem_entries", Doc: "Return the PEM in the files that fit a pattern.", Example: "salt '*' x509.get_pem_entries '/etc/pki/*.crt'", Params: []modules.Param{{Name: "glob_path"}}, Run: getPemEntries},
	{Name: "get_pem_entry", Doc: `Return the first PEM entry of a text or a file, in good form.

pem_type
    The kind of entry.`,
		Example: "salt '*' x509.get_pem_entry /etc/pki/web.crt", Params: []modules.Param{{Name: "text"}, {Name: "pem_type", Optional: true}}, Run: getPemEntry},
	{Name: "get_private_key_size", Doc: `Return the size of a private key in bits.

` + passphraseDoc,
		Example: "salt '*' x509.get_private_key_size /etc/pki/web.key", Params: []modules.Param{{Name: "private_key"}, passphraseParam}, Run: getPrivateKeySize},
	{Name: "get_public_key", Doc: `Return the public key of a certificate, a request or a key.

` + passphraseDoc,
		Example: "salt '*' x509.get_public_key /etc/pki/web.crt", Params: []modules.Param{{Name: "key"}, passphraseParam, {Name: "asObj", Optional: true}}, Run: getPublicKey},
	{Name: "get_signing_policy", Doc: `Return a signing policy of this minion, or of another.

signing_policy
    The signing policy to follow.
ca_server
    The minion that signs.`,
		Example: "salt '*' x509.get_signing_policy www", Params: []modules.Param{{Name: "signing_policy"}, {Name: "ca_server", Optional: true}}, Run: getSigningPolicy},
	{Name: "read_certificate", Doc: "Return what a certificate says.", Example: "salt '*' x509.read_certificate /etc/pki/web.crt", Params: []modules.Param{{Name: "certificate"}}, Run: readCertificate},
	{Name: "read_certificates", Doc: "Return what the certificates say whose files fit a pattern.", Example: "salt '*' x509.read_certificates '/etc/pki/*.crt'", Params: []modules.Param{{Name: "glob_path"}}, Run: readCertificates},
	{Name: "read_crl", Doc: "Return what a list of revoked certificates says.", Example: "salt '*' x509.read_crl /etc/pki/ca.crl", Params: []modules.Param{{Name: "crl"}}, Run: readCrl},
	{Name: "read_csr", Doc: "Return what a certificate request says.", Example: "salt '*' x509.read_csr /etc/pki/web.csr", Params: []modules.Param{{Name: "csr"}}, Run: readCsr},
	{Name: "sign_remote_certificate", Doc: `Make a certificate for another minion, by a signing policy.

signing_policy
    The signing policy to follow.`,
		Example: `salt '*' x509.sign_remote_certificate www "{'public_key': '/etc/pki/web.pub'}"`, Params: []modules.Param{{Name: "signing_policy"}, {Name: "kwargs"}, {Name: "get_signing_policy_only", Default: false}}, Kwargs: "more_kwargs", Run: signRemoteCertificate},
	{Name: "verify_crl", Doc: "Tell whether a list of revoked certificates is signed by a certificate.", Example: "salt '*' x509.verify_crl /etc/pki/ca.crl /etc/pki/ca.crt", Params: []modules.Param{{Name: "crl"}, {Name: "cert"}}, Run: verifyCrl},
	{Name: "verify_private_key", Doc: `Tell whether a private key and a public key belong together.

` + passphraseDoc,
		Example: "salt '*' x509.verify_private_key /etc/pki/web.key /etc/pki/web.crt", Params: []modules.Param{{Name: "private_key"}, {Name: "public_key"}, passphraseParam}, Run: verifyPrivateKey},
	{Name: "verify_signature", Doc: "Tell whether a certificate is signed by a key.", Example: "salt '*' x509.verify_signature /etc/pki/web.crt signing_pub_key=/etc/pki/ca.crt", Params: []modules.Param{
		{Name: "certificate"}, {Name: "signing_pub_key", Optional: true},
		{Name: "signing_pub_key_passphrase", Optional: true, Secret: true},
	}, Run: verifySignature},
	{Name: "will_expire", Doc: "Tell whether a certificate will have expired in some days, and more.", Example: "salt '*' x509.will_expire /etc/pki/web.crt days=30", Params: []modules.Param{{Name: "certificate"}, {Name: "days"}}, Run: willExpire},
	{Name: "write_pem", Doc: `Write a PEM entry to a file.

` + pathDoc + `overwrite
    Whether to write a file that is there.
pem_type
    The kind of entry.`,
		Example: "salt '*' x509.write_pem /etc/pki/web.pem path=/etc/pki/copy.pem", Params: []modules.Param{{Name: "text"}, {Name: "path"}, {Name: "overwrite", Default: true}, {Name: "pem_type", Optional: true}}, Run: writePem},
}}

// certificateParams are the parameters of create_certificate and its other name.
var certificateParams = []modules.Param{
	{Name: "ca_server", Optional: true}, {Name: "signing_policy", Optional: true}, {Name: "encoding", Default: "pem"},
	{Name: "append_certs", Optional: true}, {Name: "pkcs12_passphrase", Optional: true, Secret: true},
	{Name: "pkcs12_encryption_compat", Default: false}, {Name: "pkcs12_friendlyname", Optional: true},
	pathParam, {Name: "overwrite", Default: true}, {Name: "raw", Default: false},
}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	encodingDoc = `encoding
    What to make: pem, der.
`
	passphraseDoc = `passphrase
    The passphrase of the key.
`
	pathDoc = `path
    The file to write.
`
	rawDoc = `raw
    Return bytes as they are.
`
)

var (
	passphraseParam = modules.Param{Name: "passphrase", Optional: true, Secret: true}
	pathParam       = modules.Param{Name: "path", Optional: true}
)
