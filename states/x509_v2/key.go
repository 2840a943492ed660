package x509_v2

import (
	"context"
	"crypto"
	"errors"

	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	x509mod "github.com/brine-salt/brine/modules/x509_v2"
	"github.com/brine-salt/brine/states"
)

// key is one run of private_key_managed.
type key struct {
	*job
	size    any
	current crypto.Signer
}

func privateKeyManaged(ctx context.Context, c *states.Call) (*states.Result, error) {
	k := &key{job: newJob(ctx, c, "private key"), size: c.Value("keysize")}
	if v, ok := k.args["bits"]; ok {
		k.size = v
	}
	k.without("bits", "cipher", "verbose", "text")
	if err := k.unknown(); err != nil {
		return nil, err
	}
	if !pytext.Truth(k.file["mode"]) {
		k.file["mode"] = "0400"
	}
	return k.answer(k.run())
}

func (k *key) run() error {
	algo, encoding := k.Value("algo"), k.Value("encoding")
	if pytext.Truth(k.size) && (algo == "ed25519" || algo == "ed448") {
		return modules.Usagef("keysize is an invalid parameter for %s", algo)
	}
	if over, err := k.begin(); over || err != nil {
		return err
	}
	there, err := k.exists()
	if err != nil {
		return err
	}
	k.again = there
	if there && !k.Bool("new") && !k.replace {
		if err := k.load(); err != nil {
			return err
		}
	}
	switch {
	case k.current != nil:
		k.job.current = true
		k.look()
	case there && k.Bool("new") || k.replace:
		k.changes["replaced"] = k.Value("name")
	default:
		k.changes["created"] = k.Value("name")
	}
	return k.finish(encoding == "pem", func() (any, error) {
		if !k.only("encoding", "passphrase") || k.current == nil {
			kw := map[string]any{"keysize": k.size}
			k.take(kw, "algo", "passphrase", "encoding", "pkcs12_encryption_compat")
			return k.ExecKw(k.ctx, "x509.create_private_key", nil, kw)
		}
		b, _, err := pki.EncodeKey(k.current, nil)
		if err != nil {
			return nil, err
		}
		kw := map[string]any{}
		k.take(kw, "passphrase", "encoding", "pkcs12_encryption_compat")
		return k.ExecKw(k.ctx, "x509.encode_private_key", []any{b}, kw)
	})
}

// load reads the existing key.
func (k *key) load() error {
	b, err := x509mod.Source(k.Call.Call, k.real)
	if err != nil {
		return err
	}
	var passphrase []byte
	if v := k.Value("passphrase"); v != nil {
		passphrase = []byte(pytext.Str(v))
	}
	k.current, err = pki.PrivateKey(b, passphrase)
	if err == nil {
		k.compareEncoding(b)
		return nil
	}
	k.current = nil
	var bad *pki.Error
	if !errors.As(err, &bad) {
		return err
	}
	force, why := k.Bool("overwrite"), ""
	switch bad.Kind {
	case "SuperfluousPassword":
		k.changes["passphrase"] = true
		if k.current, err = pki.PrivateKey(b, nil); err != nil {
			return x509mod.Wrap(err)
		}
		k.compareEncoding(b)
		return nil
	case "InvalidPassword":
		why = "The provided passphrase cannot decrypt the private key. Pass overwrite: true to force regeneration"
		k.changes["passphrase"] = true
	case "MissingPassword":
		why = "The existing file is encrypted. Pass overwrite: true to force regeneration without passphrase"
		k.changes["passphrase"] = true
	case "SaltInvocationError":
		why = "The existing file does not seem to be a private key formatted as DER, PEM or embedded in PKCS12. Pass overwrite: true to force regeneration"
		k.replace = true
	default:
		return x509mod.Wrap(err)
	}
	if !force {
		return modules.Errorf("%s", why)
	}
	return nil
}

func (k *key) compareEncoding(b []byte) {
	if v := k.Value("encoding"); v != pki.KeyEncoding(b) {
		k.changes["encoding"] = v
	}
}

// look compares the existing key with the wanted one.
func (k *key) look() {
	algo := k.Value("algo")
	switch kind := pki.KeyType(k.current.Public()); algo {
	case "rsa", "ec", "ed25519", "ed448":
		if kind != algo {
			k.changes["algo"] = algo
			return
		}
	}
	if algo != "rsa" && algo != "ec" {
		return
	}
	want := k.size
	if want == nil {
		want = int64(2048)
		if algo == "ec" {
			want = int64(256)
		}
	}
	if want != int64(pki.KeySize(k.current.Public())) {
		k.changes["keysize"] = want
	}
}
