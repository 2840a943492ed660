package x509_v2

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "x509".
var Module = &modules.Module{Name: "x509_v2", Virtual: "x509", Doc: "Certificates, requests, revocation lists and keys.", Docs: &docs, Funcs: []modules.Def{
	{Name: "create_certificate", Params: certificateParams, Kwargs: "kwargs", Run: createCertificate},
	{Name: "create_certificate_ssh", Params: certificateParams, Kwargs: "kwargs", Run: createCertificate},
	{Name: "create_crl", Params: []modules.Param{
		{Name: "signing_private_key"}, {Name: "revoked"}, {Name: "signing_cert"},
		{Name: "signing_private_key_passphrase", Optional: true, Secret: true}, {Name: "include_expired", Default: false},
		{Name: "days_valid", Optional: true}, {Name: "digest", Default: "sha256"}, {Name: "encoding", Default: "pem"},
		{Name: "extensions", Optional: true}, pathParam, {Name: "raw", Default: false},
	}, Kwargs: "kwargs", Run: createCrl},
	{Name: "create_csr", Params: []modules.Param{
		{Name: "private_key"}, {Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "digest", Default: "sha256"},
		{Name: "encoding", Default: "pem"}, pathParam, {Name: "raw", Default: false},
	}, Kwargs: "kwargs", Run: createCsr},
	{Name: "create_private_key", Params: []modules.Param{
		{Name: "algo", Default: "rsa"}, {Name: "keysize", Optional: true}, passphraseParam, {Name: "encoding", Default: "pem"},
		{Name: "pkcs12_encryption_compat", Default: false}, pathParam, {Name: "raw", Default: false},
	}, Kwargs: "kwargs", Run: createPrivateKey},
	{Name: "encode_certificate", Params: []modules.Param{
		{Name: "certificate"}, {Name: "encoding", Default: "pem"}, {Name: "append_certs", Optional: true},
		{Name: "private_key", Optional: true}, {Name: "private_key_passphrase", Optional: true, Secret: true},
		{Name: "pkcs12_passphrase", Optional: true, Secret: true}, {Name: "pkcs12_encryption_compat", Default: false},
		{Name: "pkcs12_friendlyname", Optional: true}, {Name: "raw", Default: false},
	}, Run: encodeCertificate},
	{Name: "encode_crl",
		Params: []modules.Param{{Name: "crl"}, {Name: "encoding", Default: "pem"}, {Name: "raw", Default: false}}, Run: encodeCrl},
	{Name: "encode_csr",
		Params: []modules.Param{{Name: "csr"}, {Name: "encoding", Default: "pem"}, {Name: "raw", Default: false}}, Run: encodeCsr},
	{Name: "encode_private_key", Params: []modules.Param{
		{Name: "private_key"}, {Name: "encoding", Default: "pem"}, passphraseParam,
		{Name: "private_key_passphrase", Optional: true, Secret: true}, {Name: "pkcs12_encryption_compat", Default: false},
		{Name: "raw", Default: false},
	}, Run: encodePrivateKey},
	{Name: "expired", Params: []modules.Param{{Name: "certificate"}}, Run: expired},
	{Name: "expires", Params: []modules.Param{{Name: "certificate"}, {Name: "days", Default: int64(0)}}, Run: expires},
	{Name: "get_pem_entries", Params: []modules.Param{{Name: "glob_path"}}, Run: getPemEntries},
	{Name: "get_pem_entry",
		Params: []modules.Param{{Name: "text"}, {Name: "pem_type", Optional: true}}, Run: getPemEntry},
	{Name: "get_private_key_size",
		Params: []modules.Param{{Name: "private_key"}, passphraseParam}, Run: getPrivateKeySize},
	{Name: "get_public_key",
		Params: []modules.Param{{Name: "key"}, passphraseParam, {Name: "asObj", Optional: true}}, Run: getPublicKey},
	{Name: "get_signing_policy",
		Params: []modules.Param{{Name: "signing_policy"}, {Name: "ca_server", Optional: true}}, Run: getSigningPolicy},
	{Name: "read_certificate", Params: []modules.Param{{Name: "certificate"}}, Run: readCertificate},
	{Name: "read_certificates", Params: []modules.Param{{Name: "glob_path"}}, Run: readCertificates},
	{Name: "read_crl", Params: []modules.Param{{Name: "crl"}}, Run: readCrl},
	{Name: "read_csr", Params: []modules.Param{{Name: "csr"}}, Run: readCsr},
	{Name: "sign_remote_certificate",
		Params: []modules.Param{{Name: "signing_policy"}, {Name: "kwargs"}, {Name: "get_signing_policy_only", Default: false}}, Kwargs: "more_kwargs", Run: signRemoteCertificate},
	{Name: "verify_crl", Params: []modules.Param{{Name: "crl"}, {Name: "cert"}}, Run: verifyCrl},
	{Name: "verify_private_key",
		Params: []modules.Param{{Name: "private_key"}, {Name: "public_key"}, passphraseParam}, Run: verifyPrivateKey},
	{Name: "verify_signature", Params: []modules.Param{
		{Name: "certificate"}, {Name: "signing_pub_key", Optional: true},
		{Name: "signing_pub_key_passphrase", Optional: true, Secret: true},
	}, Run: verifySignature},
	{Name: "will_expire", Params: []modules.Param{{Name: "certificate"}, {Name: "days"}}, Run: willExpire},
	{Name: "write_pem",
		Params: []modules.Param{{Name: "text"}, {Name: "path"}, {Name: "overwrite", Default: true}, {Name: "pem_type", Optional: true}}, Run: writePem},
}}

// certificateParams are the parameters of create_certificate and its other name.
var certificateParams = []modules.Param{
	{Name: "ca_server", Optional: true}, {Name: "signing_policy", Optional: true}, {Name: "encoding", Default: "pem"},
	{Name: "append_certs", Optional: true}, {Name: "pkcs12_passphrase", Optional: true, Secret: true},
	{Name: "pkcs12_encryption_compat", Default: false}, {Name: "pkcs12_friendlyname", Optional: true},
	pathParam, {Name: "overwrite", Default: true}, {Name: "raw", Default: false},
}

var (
	passphraseParam = modules.Param{Name: "passphrase", Optional: true, Secret: true}
	pathParam       = modules.Param{Name: "path", Optional: true}
)
