package tls

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "tls".
var Module = &modules.Module{Name: "tls", Doc: "Small certificate authorities.", Funcs: []modules.Def{
	{Name: "ca_exists", Doc: `Tell whether there is an authority of this name.

` + caNameDoc + cacertPathDoc + caFilenameDoc,
		Example: "salt '*' tls.ca_exists koji", Params: []modules.Param{{Name: "ca_name"}, cacertPathParam, caFilenameParam}, Run: caExists},
	{Name: "cert_base_path", Doc: `Tell the directory of the authorities.

` + cacertPathDoc,
		Example: "salt '*' tls.cert_base_path", Params: []modules.Param{cacertPathParam}, Run: certBasePath},
	{Name: "cert_info", Doc: `Tell what a certificate says.

cert
    The path of the certificate, or its PEM.
digest
    The digest of the fingerprint.`,
		Example: "salt '*' tls.cert_info /etc/pki/koji/koji_ca_cert.crt", Params: []modules.Param{
			{Name: "cert"}, {Name: "digest", Default: "sha256"},
		}, Run: certInfo},
	{Name: "create_ca", Doc: `Make an authority: a key and a certificate that it signs itself. A key that is there is taken again.

` + caNameDoc + `bits
    The size of the RSA key.
days
    How many days it is valid.
CN
    The common name.
C
    The country, two letters.
ST
    The state or province.
L
    The locality.
O
    The organization.
OU
    The unit in it.
emailAddress
    An address for mail.
fixmode
    Make anew an authority that is there.
` + cacertPathDoc + caFilenameDoc + digestDoc + `onlyif
    A command, or a truth value: do nothing if it fails.
unless
    A command, or a truth value: do nothing if it succeeds.
` + replaceDoc,
		Example: "salt '*' tls.create_ca koji CN='Koji CA' days=3650", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "bits", Default: int64(2048)}, {Name: "days", Default: int64(365)},
			{Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"}, {Name: "ST", Default: "Utah"},
			{Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"}, {Name: "OU", Optional: true},
			{Name: "emailAddress", Optional: true}, {Name: "fixmode", Default: false}, cacertPathParam, caFilenameParam,
			{Name: "digest", Default: "sha256"}, {Name: "onlyif", Optional: true}, {Name: "unless", Optional: true},
			{Name: "replace", Default: false},
		}, Run: createCa},
	{Name: "create_ca_signed_cert", Doc: `Have an authority sign a request.

` + caNameDoc + `CN
    The common name of the request.
days
    How many days it is valid.
` + cacertPathDoc + caFilenameDoc + `cert_path
    The directory of request and certificate, instead of the authority's certs.
cert_filename
    The name of the certificate's file without ending.
` + digestDoc + `cert_type
    The kind, for the names of files.
type_ext
    The kind is in the names of the files.
` + replaceDoc,
		Example: "salt '*' tls.create_ca_signed_cert koji www.example.com", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "CN"}, {Name: "days", Default: int64(365)}, cacertPathParam, caFilenameParam,
			{Name: "cert_path", Optional: true}, certFilenameParam, {Name: "digest", Default: "sha256"},
			{Name: "cert_type", Optional: true}, {Name: "type_ext", Default: false}, {Name: "replace", Default: false},
		}, Run: createCaSignedCert},
	{Name: "create_csr", Doc: `Make a key and a request for a certificate.

` + caNameDoc + `bits
    The size of the RSA key.
CN
    The common name.
C
    The country, two letters.
ST
    The state or province.
L
    The locality.
O
    The organization.
OU
    The unit in it.
emailAddress
    An address for mail.
subjectAltName
    Further names, one or a list: DNS:www.example.com.
` + cacertPathDoc + caFilenameDoc + `csr_path
    The directory of the files, instead of the authority's certs.
csr_filename
    The name of the files without ending, instead of the common name.
` + digestDoc + `type_ext
    Put the kind into the names of the files.
cert_type
    The kind: server, client, or one of the pillar.
` + replaceDoc,
		Example: `salt '*' tls.create_csr koji CN=www.example.com subjectAltName="['DNS:www.example.com', 'DNS:example.com']"`, Params: []modules.Param{
			{Name: "ca_name"}, {Name: "bits", Default: int64(2048)}, {Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"},
			{Name: "ST", Default: "Utah"}, {Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"},
			{Name: "OU", Optional: true}, {Name: "emailAddress", Optional: true}, {Name: "subjectAltName", Optional: true},
			cacertPathParam, caFilenameParam, {Name: "csr_path", Optional: true}, {Name: "csr_filename", Optional: true},
			{Name: "digest", Default: "sha256"}, {Name: "type_ext", Default: false}, {Name: "cert_type", Default: "server"},
			{Name: "replace", Default: false},
		}, Run: createCsr},
	{Name: "create_empty_crl", Doc: `Make a list of revoked certificates with none in it.

` + caNameDoc + cacertPathDoc + caFilenameDoc + `crl_file
    The file, instead of crl.pem in the directory of the authority.
` + digestDoc,
		Example: "salt '*' tls.create_empty_crl koji", Params: []modules.Param{
			{Name: "ca_name"}, cacertPathParam, caFilenameParam, {Name: "crl_file", Optional: true}, {Name: "digest", Default: "sha256"},
		}, Run: createEmptyCrl},
	{Name: "create_pkcs12", Doc: `Put a certificate with its key and the authority's certificate into one file (PKCS#12).

` + caNameDoc + `CN
    The common name.
passphrase
    What encrypts it.
` + cacertPathDoc + replaceDoc,
		Example: "salt '*' tls.create_pkcs12 koji www.example.com passphrase=secret", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "CN"}, {Name: "passphrase", Default: "", Secret: true}, cacertPathParam,
			{Name: "replace", Default: false},
		}, Run: createPkcs12},
	{Name: "create_self_signed_cert", Doc: `Make a key and a certificate that it signs itself.

tls_dir
    The directory below that of the authorities.
bits
    The size of the RSA key.
days
    How many days it is valid.
CN
    The common name.
C
    The country, two letters.
ST
    The state or province.
L
    The locality.
O
    The organization.
OU
    The unit in it.
emailAddress
    An address for mail.
` + cacertPathDoc + `cert_filename
    The name of the files without ending, instead of the common name.
` + digestDoc + replaceDoc,
		Example: "salt '*' tls.create_self_signed_cert CN=test.example.com", Params: []modules.Param{
			{Name: "tls_dir", Default: "tls"}, {Name: "bits", Default: int64(2048)}, {Name: "days", Default: int64(365)},
			{Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"}, {Name: "ST", Default: "Utah"},
			{Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"}, {Name: "OU", Optional: true},
			{Name: "emailAddress", Optional: true}, cacertPathParam, certFilenameParam, {Name: "digest", Default: "sha256"},
			{Name: "replace", Default: false},
		}, Run: createSelfSignedCert},
	{Name: "get_ca", Doc: `Tell the path of the certificate of an authority, or what it holds.

` + caNameDoc + `as_text
    Return what the file holds, not its path.
` + cacertPathDoc,
		Example: "salt '*' tls.get_ca koji as_text=True", Params: []modules.Param{{Name: "ca_name"}, {Name: "as_text", Default: false}, cacertPathParam}, Run: getCa},
	{Name: "get_ca_signed_cert", Doc: `Tell the path of a certificate that an authority has signed, or what it holds.

` + caNameDoc + `CN
    The common name.
as_text
    Return what the file holds, not its path.
` + cacertPathDoc + `cert_filename
    The name of the file without ending, if it is not the common name.`,
		Example: "salt '*' tls.get_ca_signed_cert koji www.example.com", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "CN", Default: "localhost"}, {Name: "as_text", Default: false}, cacertPathParam, certFilenameParam,
		}, Run: getCaSignedCert},
	{Name: "get_ca_signed_key", Doc: `Tell the path of the key of a certificate that an authority has signed, or what it holds.

` + caNameDoc + `CN
    The common name.
as_text
    Return what the file holds, not its path.
` + cacertPathDoc + `key_filename
    The name of the file without ending, if it is not the common name.`,
		Example: "salt '*' tls.get_ca_signed_key koji www.example.com", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "CN", Default: "localhost"}, {Name: "as_text", Default: false}, cacertPathParam,
			{Name: "key_filename", Optional: true},
		}, Run: getCaSignedKey},
	{Name: "get_expiration_date", Doc: `Tell when a certificate ends.

cert
    The path of the certificate.
date_format
    How to write the time, as for strftime.`,
		Example: "salt '*' tls.get_expiration_date /etc/pki/koji/certs/www.example.com.crt", Params: []modules.Param{
			{Name: "cert"}, {Name: "date_format", Default: "%Y-%m-%d"},
		}, Run: getExpirationDate},
	{Name: "get_extensions", Doc: `Tell the extensions of a kind of certificate. The pillar below tls.extensions may say others.

cert_type
    server, client, or a kind of the pillar.`,
		Example: "salt '*' tls.get_extensions client", Params: []modules.Param{
			{Name: "cert_type"},
		}, Run: getExtensions},
	{Name: "maybe_fix_ssl_version", Doc: `Make the certificate of an authority anew if it says to be of version 4, as Salt's did once.

` + caNameDoc + cacertPathDoc + caFilenameDoc,
		Example: "salt '*' tls.maybe_fix_ssl_version koji", Params: []modules.Param{{Name: "ca_name"}, cacertPathParam, caFilenameParam}, Run: maybeFixSslVersion},
	{Name: "revoke_cert", Doc: `Revoke a certificate that an authority has signed, and write the list of those that are revoked.

` + caNameDoc + `CN
    The common name of the certificate.
` + cacertPathDoc + caFilenameDoc + `cert_path
    The directory of the certificate.
cert_filename
    The name of its file without ending.
crl_file
    The list to write, instead of crl.pem in the directory of the authority.
` + digestDoc,
		Example: "salt '*' tls.revoke_cert koji www.example.com", Params: []modules.Param{
			{Name: "ca_name"}, {Name: "CN"}, cacertPathParam, caFilenameParam, {Name: "cert_path", Optional: true}, certFilenameParam,
			{Name: "crl_file", Optional: true}, {Name: "digest", Default: "sha256"},
		}, Run: revokeCert},
	{Name: "set_ca_path", Doc: `Choose the directory of the authorities for the further calls of the job, and tell which it is.

cacert_path
    The directory; nothing keeps the one that is chosen.`,
		Example: "salt '*' tls.set_ca_path /etc/certs", Params: []modules.Param{
			{Name: "cacert_path"},
		}, Run: setCaPath},
	{Name: "validate", Doc: `Check a certificate against an authority and its list of revoked certificates.

cert
    The path of the certificate.
` + caNameDoc + `crl_file
    The path of the list; without it one is made from the index of the authority.`,
		Example: "salt '*' tls.validate /etc/pki/koji/certs/www.example.com.crt koji /etc/pki/koji/crl.pem", Params: []modules.Param{
			{Name: "cert"}, {Name: "ca_name"}, {Name: "crl_file"},
		}, Run: validate},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	caFilenameDoc = `ca_filename
    The name of the authority's files without ending, instead of <ca_name>_ca_cert.
`
	caNameDoc = `ca_name
    The name of the authority.
`
	cacertPathDoc = `cacert_path
    The directory of the authorities, instead of that of the option ca.cert_base_path; further calls of the job take it too.
`
	digestDoc = `digest
    The digest that is signed: sha224, sha256, sha384 or sha512.
`
	replaceDoc = `replace
    Whether to make anew what is there.
`
)

var (
	caFilenameParam   = modules.Param{Name: "ca_filename", Optional: true}
	cacertPathParam   = modules.Param{Name: "cacert_path", Optional: true}
	certFilenameParam = modules.Param{Name: "cert_filename", Optional: true}
)
