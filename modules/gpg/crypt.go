package gpg

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// message returns the input that the argument text or filename specifies. The caller must close it.
func message(c *modules.Call) (io.ReadCloser, error) {
	switch {
	case c.Bool("text"):
		r, err := input(c.Value("text"))
		return io.NopCloser(r), err
	case c.Bool("filename"):
		f, err := os.Open(c.Path(c.Str("filename")))
		if err != nil {
			return nil, modules.OSError(err)
		}
		return f, nil
	}
	return nil, modules.Usagef("filename or text must be passed.")
}

// prepare opens the keyring and the message of a call, and asks for the passphrase if one is wanted. Close the message.
func prepare(ctx context.Context, c *modules.Call, secretWanted bool) (g *ring, secret *string, in io.ReadCloser, err error) {
	if secret, err = needed(ctx, c, secretWanted); err != nil {
		return nil, nil, nil, err
	}
	if g, err = open(ctx, c); err != nil {
		return nil, nil, nil, err
	}
	in, err = message(c)
	return g, secret, in, err
}

func sign(ctx context.Context, c *modules.Call) (any, error) {
	g, secret, in, err := prepare(ctx, c, c.Bool("use_passphrase"))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	args := []string{"-sa", "--clearsign"}
	if c.Bool("keyid") {
		args = append(args, "--default-key="+c.Str("keyid"))
	}
	a, err := g.run(request{args: args, passphrase: secret, stdin: in})
	if err != nil {
		return nil, err
	}
	if !c.Bool("text") && c.Bool("output") {
		if err := os.WriteFile(c.Path(c.Str("output")), a.stdout, 0o666); err != nil {
			return nil, modules.OSError(err)
		}
	}
	return data(a), nil
}

// data returns the output of gpg, which is empty but not nil if it is missing.
func data(a *answer) []byte {
	if a.stdout == nil {
		return []byte{}
	}
	return a.stdout
}

func verify(ctx context.Context, c *modules.Call) (any, error) {
	models := []string{"pgp", "classic", "tofu", "tofu+pgp", "direct", "always", "auto"}
	var args []string
	if c.Bool("trustmodel") {
		for _, m := range models {
			if c.Value("trustmodel") == any(m) {
				args = append(args, "--trust-model="+m)
			}
		}
		if args == nil {
			text := "Invalid trustmodel defined: " + c.Str("trustmodel") + ". Use one of: " + strings.Join(models, ", ")
			c.Logger().Warn(text)
			return result(false, text), nil
		}
	}
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	r := request{args: append([]string{"--verify"}, args...)}
	signers := c.Bool("signed_by_any") || c.Bool("signed_by_all")
	if signers {
		// Otherwise gpg ends at the first signature that it cannot verify.
		r.args = append(r.args, "--no-batch")
	}
	if !c.Bool("text") && c.Bool("filename") && c.Bool("signature") {
		sig, err := os.Open(c.Path(c.Str("signature")))
		if err != nil {
			return nil, modules.OSError(err)
		}
		sig.Close()
		r.names = []string{sig.Name(), c.Path(c.Str("filename"))}
	} else {
		in, err := message(c)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		r.stdin = in
	}
	a, err := g.run(r)
	if err != nil {
		return nil, err
	}
	v := verdictOf(a, false)
	if signers {
		return v.bySigners(c)
	}
	if v.trust == "" {
		return result(false, "The signature could not be verified."), nil
	}
	ret := result(true, "The signature is verified.")
	ret["username"], ret["key_id"], ret["trust_level"] = orNone(v.username), orNone(v.keyID), v.trust
	return ret, nil
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// bySigners returns the result of a verification that requires certain signers.
func (v *verdict) bySigners(c *modules.Call) (any, error) {
	list, valid := []any{}, map[string]bool{}
	for _, s := range v.signatures {
		m, err := s.show()
		if err != nil {
			return nil, err
		}
		list = append(list, m)
		if s.trust != "" && s.fingerprint != "" {
			valid[s.fingerprint] = true
		}
	}
	answer := func(ok bool, text string) (any, error) {
		return map[string]any{"res": ok, "message": text, "signatures": list}, nil
	}
	if c.Bool("signed_by_any") {
		found := false
		for _, signer := range many(c.Value("signed_by_any")) {
			found = found || valid[pytext.Str(signer)]
		}
		if !found {
			return answer(false, "None of the public keys listed in signed_by_any provided a valid signature")
		}
	}
	if c.Bool("signed_by_all") {
		for _, signer := range many(c.Value("signed_by_all")) {
			if !valid[pytext.Str(signer)] {
				return answer(false, "Public key "+pytext.Str(signer)+" has not provided a valid signature, but was listed in signed_by_all")
			}
		}
	}
	return answer(true, "All required keys have provided a signature")
}

// many returns a list unchanged, and any other value as a list with one element.
func many(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func encrypt(ctx context.Context, c *modules.Call) (any, error) {
	g, secret, in, err := prepare(ctx, c, c.Bool("sign") && c.Bool("use_passphrase"))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if !c.Bool("recipients") {
		return nil, valueError("No recipients or hidden recipients specified with asymmetric encryption")
	}
	args := []string{"--encrypt"}
	for _, r := range many(c.Value("recipients")) {
		name, ok := r.(string)
		if !ok {
			return nil, notPath(r)
		}
		args = append(args, "--recipient="+name)
	}
	args = append(append(args, "--armor"), into(c)...)
	if c.Value("sign") == any(true) {
		args = append(args, "--sign")
	} else if c.Bool("sign") {
		args = append(args, "--sign", "--default-key="+c.Str("sign"))
	}
	if c.Bool("always_trust") {
		args = append(args, "--trust-model=always")
	}
	return g.crypt(request{args: args, passphrase: secret, stdin: in}, "Encrypted", c.Bool("output"))
}

// into returns the options for the output file, or nil without one.
func into(c *modules.Call) []string {
	if !c.Bool("output") {
		return nil
	}
	path := c.Path(c.Str("output"))
	if _, err := os.Stat(path); err == nil {
		return []string{"--yes", "--output=" + path}
	}
	return []string{"--output=" + path}
}

func decrypt(ctx context.Context, c *modules.Call) (any, error) {
	g, secret, in, err := prepare(ctx, c, c.Bool("use_passphrase"))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	args := append([]string{"--decrypt"}, into(c)...)
	return g.crypt(request{args: args, passphrase: secret, stdin: in}, "Decrypted", c.Bool("output"))
}

// crypt runs gpg and returns its outcome as a result, or its output.
func (g *ring) crypt(r request, done string, written bool) (any, error) {
	a, err := g.run(r)
	if err != nil {
		return nil, err
	}
	v := verdictOf(a, true)
	if !v.ok {
		g.c.Logger().Error("Gpg failed", "stderr", a.stderr)
	}
	switch {
	case !v.ok && g.c.Bool("bare"):
		return false, nil
	case !v.ok:
		return map[string]any{"res": false, "comment": v.status + ".\nPlease check the salt-minion log."}, nil
	case g.c.Bool("bare"):
		return data(a), nil
	case written:
		return map[string]any{"res": true, "comment": done + " data has been written to " + g.c.Str("output")}, nil
	}
	return map[string]any{"res": true, "comment": data(a)}, nil
}
