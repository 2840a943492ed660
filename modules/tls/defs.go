package tls

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "tls".
var Module = &modules.Module{Name: "tls", Doc: "Small certificate authorities.", Docs: &docs, Funcs: []modules.Def{
	{Name: "ca_exists", Params: []modules.Param{{Name: "ca_name"}, cacertPathParam, caFilenameParam}, Run: caExists},
	{Name: "cert_base_path", Params: []modules.Param{cacertPathParam}, Run: certBasePath},
	{Name: "cert_info", Params: []modules.Param{
		{Name: "cert"}, {Name: "digest", Default: "sha256"},
	}, Run: certInfo},
	{Name: "create_ca", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "bits", Default: int64(2048)}, {Name: "days", Default: int64(365)},
		{Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"}, {Name: "ST", Default: "Utah"},
		{Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"}, {Name: "OU", Optional: true},
		{Name: "emailAddress", Optional: true}, {Name: "fixmode", Default: false}, cacertPathParam, caFilenameParam,
		{Name: "digest", Default: "sha256"}, {Name: "onlyif", Optional: true}, {Name: "unless", Optional: true},
		{Name: "replace", Default: false},
	}, Run: createCa},
	{Name: "create_ca_signed_cert", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "CN"}, {Name: "days", Default: int64(365)}, cacertPathParam, caFilenameParam,
		{Name: "cert_path", Optional: true}, certFilenameParam, {Name: "digest", Default: "sha256"},
		{Name: "cert_type", Optional: true}, {Name: "type_ext", Default: false}, {Name: "replace", Default: false},
	}, Run: createCaSignedCert},
	{Name: "create_csr", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "bits", Default: int64(2048)}, {Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"},
		{Name: "ST", Default: "Utah"}, {Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"},
		{Name: "OU", Optional: true}, {Name: "emailAddress", Optional: true}, {Name: "subjectAltName", Optional: true},
		cacertPathParam, caFilenameParam, {Name: "csr_path", Optional: true}, {Name: "csr_filename", Optional: true},
		{Name: "digest", Default: "sha256"}, {Name: "type_ext", Default: false}, {Name: "cert_type", Default: "server"},
		{Name: "replace", Default: false},
	}, Run: createCsr},
	{Name: "create_empty_crl", Params: []modules.Param{
		{Name: "ca_name"}, cacertPathParam, caFilenameParam, {Name: "crl_file", Optional: true}, {Name: "digest", Default: "sha256"},
	}, Run: createEmptyCrl},
	{Name: "create_pkcs12", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "CN"}, {Name: "passphrase", Default: "", Secret: true}, cacertPathParam,
		{Name: "replace", Default: false},
	}, Run: createPkcs12},
	{Name: "create_self_signed_cert", Params: []modules.Param{
		{Name: "tls_dir", Default: "tls"}, {Name: "bits", Default: int64(2048)}, {Name: "days", Default: int64(365)},
		{Name: "CN", Default: "localhost"}, {Name: "C", Default: "US"}, {Name: "ST", Default: "Utah"},
		{Name: "L", Default: "Salt Lake City"}, {Name: "O", Default: "SaltStack"}, {Name: "OU", Optional: true},
		{Name: "emailAddress", Optional: true}, cacertPathParam, certFilenameParam, {Name: "digest", Default: "sha256"},
		{Name: "replace", Default: false},
	}, Run: createSelfSignedCert},
	{Name: "get_ca",
		Params: []modules.Param{{Name: "ca_name"}, {Name: "as_text", Default: false}, cacertPathParam}, Run: getCa},
	{Name: "get_ca_signed_cert", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "CN", Default: "localhost"}, {Name: "as_text", Default: false}, cacertPathParam, certFilenameParam,
	}, Run: getCaSignedCert},
	{Name: "get_ca_signed_key", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "CN", Default: "localhost"}, {Name: "as_text", Default: false}, cacertPathParam,
		{Name: "key_filename", Optional: true},
	}, Run: getCaSignedKey},
	{Name: "get_expiration_date", Params: []modules.Param{
		{Name: "cert"}, {Name: "date_format", Default: "%Y-%m-%d"},
	}, Run: getExpirationDate},
	{Name: "get_extensions", Params: []modules.Param{
		{Name: "cert_type"},
	}, Run: getExtensions},
	{Name: "maybe_fix_ssl_version",
		Params: []modules.Param{{Name: "ca_name"}, cacertPathParam, caFilenameParam}, Run: maybeFixSslVersion},
	{Name: "revoke_cert", Params: []modules.Param{
		{Name: "ca_name"}, {Name: "CN"}, cacertPathParam, caFilenameParam, {Name: "cert_path", Optional: true}, certFilenameParam,
		{Name: "crl_file", Optional: true}, {Name: "digest", Default: "sha256"},
	}, Run: revokeCert},
	{Name: "set_ca_path", Params: []modules.Param{
		{Name: "cacert_path"},
	}, Run: setCaPath},
	{Name: "validate", Params: []modules.Param{
		{Name: "cert"}, {Name: "ca_name"}, {Name: "crl_file"},
	}, Run: validate},
}}

var (
	caFilenameParam   = modules.Param{Name: "ca_filename", Optional: true}
	cacertPathParam   = modules.Param{Name: "cacert_path", Optional: true}
	certFilenameParam = modules.Param{Name: "cert_filename", Optional: true}
)
