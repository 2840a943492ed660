package hashutil

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "hashutil": digests and encodings.
var Module = &modules.Module{Name: "hashutil", Doc: "Digests and encodings.", Funcs: []modules.Def{
	{Name: "base64_b64decode", Doc: "Decode base64.", Example: "salt '*' hashutil.base64_b64decode 'Z2V0IHNhbHRlZA=='", Params: []modules.Param{{Name: "instr"}}, Run: base64Decode},
	{Name: "base64_b64encode", Doc: "Encode a text as base64, in one line.", Example: "salt '*' hashutil.base64_b64encode 'get salted'", Params: []modules.Param{{Name: "instr"}}, Run: base64B64encode},
	{Name: "base64_decodefile", Doc: `Decode base64 into a file.

instr
    The base64.
outfile
    The file.`,
		Example: "salt '*' hashutil.base64_decodefile instr='Z2V0IHNhbHRlZAo=' outfile='/path/to/binary_file'", Params: []modules.Param{{Name: "instr"}, {Name: "outfile"}}, Run: base64Decodefile},
	{Name: "base64_decodestring", Doc: "Decode base64.", Example: "salt '*' hashutil.base64_decodestring instr='Z2V0IHNhbHRlZAo='", Params: []modules.Param{{Name: "instr"}}, Run: base64Decode},
	{Name: "base64_encodefile", Doc: "Return the content of a file as base64, in lines of 76 characters.", Example: "salt '*' hashutil.base64_encodefile /path/to/binary_file", Params: []modules.Param{{Name: "fname"}}, Run: base64Encodefile},
	{Name: "base64_encodestring", Doc: "Encode a text as base64, in lines of 76 characters.", Example: "salt '*' hashutil.base64_encodestring 'get salted'", Params: []modules.Param{{Name: "instr"}}, Run: base64Encodestring},
	{Name: "digest", Doc: `Return the digest of a text.

instr
    The text.
checksum
    The hash function: md5, sha256 or sha512.`,
		Example: "salt '*' hashutil.digest 'get salted'", Params: []modules.Param{{Name: "instr"}, {Name: "checksum", Default: "md5", Type: modules.String}}, Run: digest},
	{Name: "digest_file", Doc: `Return the digest of a file.

infile
    The file.
checksum
    The hash function: md5, sha256 or sha512.`,
		Example: "salt '*' hashutil.digest_file /path/to/file", Params: []modules.Param{{Name: "infile"}, {Name: "checksum", Default: "md5", Type: modules.String}}, Run: digestFile},
	{Name: "github_signature", Doc: `Tell whether a web hook of GitHub is signed with a secret.

string
    The body of the request.
shared_secret
    The secret.
challenge_hmac
    The signature: the hash function, "=" and the digest.`,
		Example: `salt '*' hashutil.github_signature '{"ref":....} ' 'shared secret' 'sha1=bc6550fc290acf5b42283fa8deaf55cea0f8c206'`, Params: []modules.Param{{Name: "string"}, {Name: "shared_secret", Secret: true}, {Name: "challenge_hmac"}}, Run: githubSignature},
	{Name: "hmac_compute", Doc: `Return the HMAC-SHA256 of a text.

string
    The text.
shared_secret
    The secret.`,
		Example: "salt '*' hashutil.hmac_compute 'get salted' 'shared secret'", Params: []modules.Param{{Name: "string"}, {Name: "shared_secret", Secret: true}}, Run: hmacCompute},
	{Name: "hmac_signature", Doc: `Tell whether a text is signed with a secret.

string
    The text.
shared_secret
    The secret.
challenge_hmac
    The signature: the HMAC-SHA256 in base64.`,
		Example: "salt '*' hashutil.hmac_signature 'get salted' 'shared secret' 'eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ='", Params: []modules.Param{{Name: "string"}, {Name: "shared_secret", Secret: true}, {Name: "challenge_hmac"}}, Run: hmacSignature},
	{Name: "md5_digest", Doc: "Return the MD5 digest of a text.", Example: "salt '*' hashutil.md5_digest 'get salted'", Params: []modules.Param{{Name: "instr"}}, Run: md5Digest},
	{Name: "sha256_digest", Doc: "Return the SHA-256 digest of a text.", Example: "salt '*' hashutil.sha256_digest 'get salted'", Params: []modules.Param{{Name: "instr"}}, Run: sha256Digest},
	{Name: "sha512_digest", Doc: "Return the SHA-512 digest of a text.", Example: "salt '*' hashutil.sha512_digest 'get salted'", Params: []modules.Param{{Name: "instr"}}, Run: sha512Digest},
}}
