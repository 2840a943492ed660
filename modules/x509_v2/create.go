package x509_v2

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// date parses a time in Salt's format, as UTC. None is the zero time.
func date(v any, param string) (time.Time, error) {
	if v == nil {
		return time.Time{}, nil
	}
	s := pytext.Str(v)
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		return time.Time{}, modules.Usagef("Invalid date format in param `%s`: time data %s does not match format '%%Y-%%m-%%d %%H:%%M:%%S'", param, pytext.Repr(s))
	}
	return t, nil
}

// subject returns the distinguished name from the arguments.
func subject(args map[string]any) ([]byte, error) {
	if v := args["subject"]; pytext.Truth(v) {
		name, err := pki.Name(v)
		return name, Wrap(err)
	}
	name, err := pki.Name(args)
	return name, Wrap(err)
}

// after returns the time a number of days from now.
func after(c *modules.Call, days any) (t time.Time, err error) {
	n, err := modules.ToInt(days)
	if err != nil {
		return t, err
	}
	t, ok := pki.InDays(c.Now().UTC(), n)
	if !ok {
		return t, &modules.PythonError{Type: "OverflowError", Msg: "date value out of range"}
	}
	return t, nil
}

// span returns the period for which a certificate is valid.
func span(c *modules.Call, args map[string]any) (from, to time.Time, err error) {
	if from, err = date(args["not_before"], "not_before"); err != nil {
		return from, to, err
	}
	if to, err = date(args["not_after"], "not_after"); err != nil {
		return from, to, err
	}
	if from.IsZero() {
		from = c.Now()
	}
	if to.IsZero() {
		valid := args["days_valid"]
		if valid == nil {
			valid = int64(30)
		}
		if to, err = after(c, valid); err != nil {
			return from, to, err
		}
	}
	if to.Before(from) {
		return from, to, &modules.PythonError{Type: "ValueError", Msg: "The not valid after date must be after the not valid before date."}
	}
	return from, to, nil
}

// local makes a certificate of the arguments, and gives the private key that it is about, nil if that is not known.
func local(c *modules.Call, args map[string]any) ([]byte, crypto.Signer, error) {
	d, err := DraftCertificate(c, args, false)
	if err != nil {
		return nil, nil, err
	}
	digest := args["digest"]
	if digest == nil {
		digest = "sha256"
	}
	b, err := d.Sign(d.Key, pytext.Str(digest))
	if err != nil {
		return nil, nil, Wrap(err)
	}
	return b, d.Own, copyTo(c, args, b)
}

// copyTo puts a copy of a certificate into the directory of a CA.
func copyTo(c *modules.Call, args map[string]any, b []byte) error {
	if !pytext.Truth(args["copypath"]) {
		return nil
	}
	cert, err := pki.Cert(b)
	if err != nil {
		return Wrap(err)
	}
	name := fmt.Sprintf("%x.crt", cert.SerialNumber)
	if cn, ok := pki.NameMap(cert.RawSubject)["CN"].(string); ok && pytext.Truth(args["prepend_cn"]) {
		name = cn + "-" + name
	}
	path := filepath.Join(c.Path(pytext.Str(args["copypath"])), name)
	return modules.OSError(atomicfile.Replace(path, pki.PEM("CERTIFICATE", b), 0o600))
}

// keywords returns the keyword arguments without the fields of the job. Long names are replaced by short ones.
func keywords(c *modules.Call) map[string]any {
	args := map[string]any{}
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "__") {
			args[k] = v
		}
	}
	if v, ok := args["algorithm"]; ok {
		args["digest"] = v
		delete(args, "algorithm")
	}
	pki.LongNames(args)
	return args
}

func createCertificate(ctx context.Context, c *modules.Call) (any, error) {
	args := keywords(c)
	_, valid := args["days_valid"]
	if _, until := args["not_after"]; !valid && !until {
		args["days_valid"] = int64(365)
	}
	how, err := encoding(c, "der", "pem", "pkcs7_der", "pkcs7_pem", "pkcs12")
	if err != nil {
		return nil, err
	}
	if v, ok := args["digest"]; ok {
		if _, err := checkDigest(v); err != nil {
			return nil, err
		}
	}
	if _, err := certEncoding(c); err != nil {
		return nil, err
	}
	if _, ok := args["signing_private_key"]; !ok && !c.Bool("ca_server") {
		return nil, modules.Usagef("Creating a certificate locally at least requires a signing private key.")
	}
	if _, there := isFile(c, c.Value("path")); there && !c.Bool("overwrite") {
		return "The file at " + c.Str("path") + " exists and overwrite was set to false", nil
	}
	b, key, err := make509(ctx, c, args, how)
	if err != nil {
		return nil, err
	}
	cert, err := pki.Cert(b)
	if err != nil {
		return nil, Wrap(err)
	}
	b, chain, err := encodeCert(c, how, cert, key)
	if err != nil {
		return nil, err
	}
	return deliver(c, how, "CERTIFICATE", "Certificate", b, chain...)
}

// errNoKey returns the error for a PKCS#12 certificate without its private key.
func errNoKey() error {
	return modules.Usagef("Creating a PKCS12-encoded certificate without embedded private key is unsupported")
}

// make509 has the certificate made, here or by another minion, and gives the private key that it is about, nil if that is not known.
func make509(ctx context.Context, c *modules.Call, args map[string]any, how string) (b []byte, key crypto.Signer, err error) {
	remotely := c.Bool("ca_server")
	if !remotely {
		policy, err := ownPolicy(ctx, c, c.Value("signing_policy"))
		if err != nil {
			return nil, nil, err
		}
		args = Merge(policy, args)
	}
	if _, own := args["private_key"]; how == "pkcs12" && !remotely && !own {
		if _, by := args["signing_cert"]; by {
			return nil, nil, errNoKey()
		}
	}
	if remotely {
		return remote(ctx, c, args)
	}
	return local(c, args)
}

func createCsr(_ context.Context, c *modules.Call) (any, error) {
	args := keywords(c)
	digest := c.Value("digest")
	if v, ok := args["digest"]; ok {
		digest = v
	}
	how, err := encoding(c, "der", "pem")
	if err != nil {
		return nil, err
	}
	name, err := checkDigest(digest)
	if err != nil {
		return nil, err
	}
	key, who, list, err := DraftRequest(c, args)
	if err != nil {
		return nil, err
	}
	b, err := pki.Request(key, name, who, list)
	if err != nil {
		return nil, Wrap(err)
	}
	return deliver(c, how, "CERTIFICATE REQUEST", "CSR", b)
}

func createCrl(_ context.Context, c *modules.Call) (any, error) {
	var unknown []any
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if !strings.HasPrefix(k, "_") && k != "text" {
			unknown = append(unknown, k)
		}
	}
	if unknown != nil {
		return nil, modules.Usagef("Unrecognized keyword arguments: %s", pytext.Repr(unknown))
	}
	how, err := encoding(c, "der", "pem")
	if err != nil {
		return nil, err
	}
	digest, err := checkDigest(c.Value("digest"))
	if err != nil {
		return nil, err
	}
	args, err := c.Map("extensions")
	if err != nil {
		return nil, err
	}
	d, err := DraftRevocationList(c, args)
	if err != nil {
		return nil, err
	}
	b, err := pki.RevocationList(d.Key, digest, d.Cert.RawSubject, c.Now(), d.Until, d.Revoked, d.Extensions)
	if err != nil {
		return nil, Wrap(err)
	}
	return deliver(c, how, "X509 CRL", "CRL", b)
}

// revocations reads the argument revoked.
func revocations(c *modules.Call) ([]pki.Revoked, error) {
	items, ok := c.Value("revoked").([]any)
	if !ok && c.Value("revoked") != nil {
		return nil, modules.Usagef("revoked must be a list of dictionaries")
	}
	var out []pki.Revoked
	for _, x := range items {
		m, ok := x.(map[string]any)
		if !ok {
			return nil, modules.Usagef("revoked must be a list of dictionaries")
		}
		r, list, err := revocation(c, oldForm(nested.CopyMap(m)))
		if err != nil {
			return nil, err
		}
		if list {
			out = append(out, r)
		}
	}
	return out, nil
}

// oldForm converts the old forms of an entry to the present one.
func oldForm(m map[string]any) map[string]any {
	if len(m) == 1 {
		for _, v := range m {
			if list, ok := v.([]any); ok {
				m = map[string]any{}
				for _, x := range list {
					if one, ok := x.(map[string]any); ok {
						maps.Copy(m, one)
					}
				}
			}
		}
	}
	if why, ok := m["reason"]; ok {
		delete(m, "reason")
		ext, _ := m["extensions"].(map[string]any)
		if ext == nil {
			ext = map[string]any{}
		}
		ext["CRLReason"] = why
		m["extensions"] = ext
	}
	return m
}

// revocation returns one entry of a revocation list. list is false if the entry does not belong in the list.
func revocation(c *modules.Call, m map[string]any) (r pki.Revoked, list bool, err error) {
	serial := m["serial_number"]
	ends, err := date(m["not_after"], "not_after")
	if err != nil {
		return r, false, err
	}
	if v, ok := m["certificate"]; ok {
		cert, err := Certificate(c, v)
		if err != nil {
			return r, false, err
		}
		serial, ends = cert.SerialNumber.Bytes(), cert.NotAfter
	}
	if !pytext.Truth(serial) {
		return r, false, modules.Usagef("Need serial_number or certificate")
	}
	if r.Serial, err = pki.Serial(serial); err != nil {
		return r, false, Wrap(err)
	}
	if !ends.IsZero() && !c.Bool("include_expired") && c.Now().After(ends) {
		return r, false, nil
	}
	if r.Date, err = date(m["revocation_date"], "revocation_date"); err != nil {
		return r, false, err
	}
	if r.Date.IsZero() {
		r.Date = c.Now()
	}
	ext, _ := m["extensions"].(map[string]any)
	r.Extensions, err = pki.Build(ext, "e", pki.Issuer{})
	return r, true, Wrap(err)
}

// ownPolicy returns a signing policy of this minion, from its pillar or its configuration.
func ownPolicy(ctx context.Context, c *modules.Call, name any) (map[string]any, error) {
	if name == nil {
		return map[string]any{}, nil
	}
	for _, fun := range [...]string{"pillar.get", "config.get"} {
		v, err := c.Exec(ctx, fun, "x509_signing_policies", map[string]any{})
		if err != nil {
			return nil, err
		}
		all, _ := v.(map[string]any)
		switch p := all[pytext.Str(name)].(type) {
		case []any:
			out := map[string]any{}
			for _, x := range p {
				if m, ok := x.(map[string]any); ok {
					maps.Copy(out, m)
				}
			}
			if len(out) > 0 {
				return out, nil
			}
		case map[string]any:
			if len(p) > 0 {
				return nested.CopyMap(p), nil
			}
		}
	}
	return map[string]any{}, nil
}

// Merge puts a signing policy over the arguments of a request.
func Merge(policy, args map[string]any) map[string]any {
	if len(policy) == 0 {
		return args
	}
	policy, args = nested.CopyMap(policy), maps.Clone(args)
	pki.LongNames(args)
	if have, ok := args["subject"]; ok {
		switch want := policy["subject"].(type) {
		case map[string]any:
			if m, ok := have.(map[string]any); ok {
				args["subject"] = nested.Update(nested.CopyMap(m), want, false)
				delete(policy, "subject")
			}
		case []any:
			if l, ok := have.([]any); ok {
				args["subject"] = append(slices.Clone(want), l...)
				delete(policy, "subject")
			}
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(policy)), pki.IsName) {
			delete(args, "subject")
		}
	}
	maps.Copy(args, policy)
	return args
}

func getSigningPolicy(ctx context.Context, c *modules.Call) (any, error) {
	if c.Value("ca_server") == nil {
		policy, err := ownPolicy(ctx, c, c.Value("signing_policy"))
		if err == nil {
			pki.LongNames(policy)
		}
		return policy, err
	}
	key := "_x509_policies:" + c.Str("ca_server") + ":" + c.Str("signing_policy")
	policy, ok := map[string]any(nil), false
	if v, have := c.Context().Get(key); have {
		policy, ok = v.(map[string]any)
	}
	if !ok {
		v, err := ask(ctx, c, c.Value("ca_server"), c.Value("signing_policy"), map[string]any{}, true)
		if err != nil {
			return nil, err
		}
		if policy, ok = v.(map[string]any); !ok {
			return nil, modules.Errorf("Received invalid return value from ca_server. See minion log for details")
		}
		if signing, have := policy["signing_cert"]; have {
			cert, err := Certificate(c, signing)
			if err != nil {
				return nil, err
			}
			policy["signing_cert"] = string(pki.PEM("CERTIFICATE", cert.Raw))
		}
		c.Context().Set(key, policy)
	}
	policy = nested.CopyMap(policy)
	pki.LongNames(policy)
	return policy, nil
}

// ask asks another minion.
func ask(ctx context.Context, c *modules.Call, server, policy any, args map[string]any, policyOnly bool) (any, error) {
	v, err := c.ExecKw(ctx, "publish.publish", []any{server, "x509.sign_remote_certificate"}, map[string]any{"arg": []any{policy, args, policyOnly}})
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	if len(all) == 0 {
		return nil, modules.Usagef("ca_server did not respond. Salt master must permit peers to call the sign_remote_certificate function.")
	}
	answer, _ := all[slices.Sorted(maps.Keys(all))[0]].(map[string]any)
	data, ok := answer["data"]
	if !ok {
		return nil, modules.Errorf("Received invalid return value from ca_server. See minion log for details")
	}
	if list, _ := answer["errors"].([]any); len(list) > 0 {
		texts := make([]string, len(list))
		for i, x := range list {
			texts[i] = pytext.Str(x)
		}
		return nil, modules.Errorf("ca_server reported errors:\n%s", strings.Join(texts, "\n"))
	}
	return data, nil
}

// remote has another minion make the certificate, and gives the private key that it is about, nil if that is not known.
func remote(ctx context.Context, c *modules.Call, args map[string]any) (b []byte, key crypto.Signer, err error) {
	if c.Value("signing_policy") == nil {
		return nil, nil, modules.Usagef("signing_policy must be specified to request a certificate from a remote ca_server")
	}
	var pub any
	switch {
	case pytext.Truth(args["private_key"]):
		if key, err = PrivateKey(c, args["private_key"], args["private_key_passphrase"]); err == nil {
			pub = key.Public()
		}
	case pytext.Truth(args["public_key"]):
		pub, err = publicKey(c, args["public_key"])
	}
	if err != nil {
		return nil, nil, err
	}
	// Private keys stay here.
	delete(args, "private_key")
	delete(args, "private_key_passphrase")
	if pub != nil {
		b, err := x509.MarshalPKIXPublicKey(pub)
		if err != nil {
			return nil, nil, err
		}
		args["public_key"] = b
	}
	if pytext.Truth(args["csr"]) {
		csr, err := request(c, args["csr"])
		if err != nil {
			return nil, nil, err
		}
		args["csr"] = csr.Raw
	}
	v, err := ask(ctx, c, c.Value("ca_server"), c.Value("signing_policy"), args, false)
	if err != nil {
		return nil, nil, err
	}
	cert, err := Certificate(c, v)
	if err != nil {
		return nil, nil, modules.Errorf("ca_server did not return a certificate: %s", pytext.Str(v))
	}
	return cert.Raw, key, nil
}

func signRemoteCertificate(ctx context.Context, c *modules.Call) (any, error) {
	refuse := func(text string) (any, error) { return map[string]any{"data": nil, "errors": []any{text}}, nil }
	const broken = "Failed building the signing policy. See CA server log for details."
	policy, err := ownPolicy(ctx, c, c.Value("signing_policy"))
	if err != nil {
		return refuse(broken)
	}
	if len(policy) == 0 {
		return refuse("signing_policy must be specified and defined on signing minion")
	}
	if test, ok := policy["minions"]; ok {
		id, known := c.Keywords["__pub_id"]
		if !known {
			return refuse("minion sending this request could not be identified")
		}
		allowed, err := permitted(ctx, c, pytext.Str(test), id)
		if err != nil {
			return refuse(broken)
		}
		if !allowed {
			return refuse("minion not permitted to use specified signing policy")
		}
		delete(policy, "minions")
	}
	if c.Bool("get_signing_policy_only") {
		delete(policy, "signing_private_key")
		delete(policy, "signing_private_key_passphrase")
		if v, ok := policy["signing_cert"]; ok {
			cert, err := Certificate(c, v)
			if err != nil {
				return refuse(err.Error())
			}
			policy["signing_cert"] = cert.Raw
		}
		return map[string]any{"data": policy, "errors": []any{}}, nil
	}
	args, err := c.Map("kwargs")
	if err != nil {
		return refuse(broken)
	}
	args = Merge(policy, args)
	delete(args, "ca_server")
	b, _, err := local(c, args)
	if err != nil {
		var python *modules.PythonError
		if errors.As(err, &python) {
			return refuse(python.Msg)
		}
		return refuse(err.Error())
	}
	return map[string]any{"data": b, "errors": []any{}}, nil
}

// permitted reports whether a minion may use a policy.
func permitted(ctx context.Context, c *modules.Call, test string, id any) (bool, error) {
	if !strings.Contains(test, "@") {
		v, err := c.Exec(ctx, "match.glob", test, id)
		return pytext.Truth(v), err
	}
	v, err := c.ExecKw(ctx, "publish.runner", []any{"match.compound_matches"}, map[string]any{"arg": []any{test, id}})
	m, _ := v.(map[string]any)
	return m["res"] == id, err
}
