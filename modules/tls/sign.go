package tls

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pki"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// profile returns the extensions that a type of certificate has: in its requests, and in the certificates themselves.
func profile(ctx context.Context, c *modules.Call, name any) (map[string]any, error) {
	if name == "" {
		c.Logger().Error("cert_type set to empty in tls_ca.get_extensions(); defaulting to ``server``")
		name = "server"
	}
	pillar := func(kind string, fallback any) (any, error) {
		return c.Exec(ctx, "pillar.get", "tls.extensions:"+kind, fallback)
	}
	known := map[string]any{
		"common": map[string]any{
			"csr":  map[string]any{"basicConstraints": "CA:FALSE"},
			"cert": map[string]any{"authorityKeyIdentifier": "keyid,issuer:always", "subjectKeyIdentifier": "hash"},
		},
		"server": map[string]any{
			"csr":  map[string]any{"extendedKeyUsage": "serverAuth", "keyUsage": "digitalSignature, keyEncipherment"},
			"cert": map[string]any{},
		},
		"client": map[string]any{
			"csr":  map[string]any{"extendedKeyUsage": "clientAuth", "keyUsage": "nonRepudiation, digitalSignature, keyEncipherment"},
			"cert": map[string]any{},
		},
	}
	for kind := range known {
		v, err := pillar(kind, false)
		if err != nil {
			return nil, err
		}
		if pytext.Truth(v) {
			known[kind] = v
		}
	}
	kind := pytext.Str(name)
	if _, ok := known[kind]; !ok {
		v, err := pillar(kind, "")
		if err != nil {
			return nil, err
		}
		known[kind] = v
	}
	common, ok := known["common"].(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "tls.extensions:common is not a mapping"}
	}
	ret := map[string]any{}
	for use, v := range common {
		own, ok := v.(map[string]any)
		if !ok {
			return nil, modules.NoAttribute(v, "update")
		}
		more, ok := known[kind].(map[string]any)
		if !ok {
			return nil, &modules.TypeError{Msg: "string indices must be integers, not 'str'"}
		}
		added, ok := more[use]
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(use)}
		}
		m, _ := added.(map[string]any)
		ret[use] = nested.Update(nested.CopyMap(own), m, false)
	}
	return ret, nil
}

func getExtensions(ctx context.Context, c *modules.Call) (any, error) {
	return profile(ctx, c, c.Value("cert_type"))
}

func createCsr(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	there, err := r.caExists()
	if err != nil {
		return nil, err
	}
	if !there {
		return `Certificate for CA named "` + r.ca() + `" does not exist, please create it first.`, nil
	}
	dir := r.base + "/" + r.ca() + "/certs/"
	if v := c.Value("csr_path"); pytext.Truth(v) {
		dir = pytext.Str(v)
	}
	if !r.exists(dir) {
		if err := r.mkdir(dir); err != nil {
			return nil, err
		}
	}
	cn := pytext.Str(c.Value("CN"))
	name := cn
	if c.Bool("type_ext") {
		name += "_" + pytext.Str(c.Value("cert_type"))
	}
	if v := c.Value("csr_filename"); pytext.Truth(v) {
		name = pytext.Str(v)
	}
	file := dir + "/" + name
	if !c.Bool("replace") && r.exists(file+".csr") {
		return `Certificate Request "` + file + `.csr" already exists`, nil
	}
	sum, err := digest(c.Value("digest"))
	if err != nil {
		return nil, err
	}
	key, err := r.newKey(c.Value("bits"))
	if err != nil {
		return nil, err
	}
	who, err := subject(c.Value)
	if err != nil {
		return nil, err
	}
	list, err := r.requestExtensions(key)
	if err != nil {
		return nil, err
	}
	raw, err := pki.Request(key, sum, who, list)
	if err != nil {
		return nil, err
	}
	if err := r.pair(file, "csr", key, pki.PEM("CERTIFICATE REQUEST", raw)); err != nil {
		return nil, err
	}
	shown := dir + "/" + name
	if strings.HasSuffix(dir, "/") {
		shown = dir + name
	}
	if path.IsAbs(name) {
		shown = name
	}
	return `Created Private Key: "` + shown + `.key" Created CSR for "` + cn + `": "` + shown + `.csr"`, nil
}

// requestExtensions returns the extensions that a request asks for.
func (r *room) requestExtensions(key signer) ([]pki.Extension, error) {
	kinds, err := profile(r.ctx, r.Call, r.Value("cert_type"))
	if err != nil {
		return nil, err
	}
	args, ok := kinds["csr"].(map[string]any)
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'csr'"}
	}
	if v := r.Value("subjectAltName"); pytext.Truth(v) {
		args["subjectAltName"] = v
	}
	var list []pki.Extension
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !pki.IsExtension(name) {
			return nil, sslError("X509 V3 routines", "unknown extension name", "X509 V3 routines", "error in extension")
		}
		one, err := pki.Build(map[string]any{name: args[name]}, "r", pki.Issuer{Subject: key.Public()})
		if err != nil {
			return nil, modules.Usagef("%s", err)
		}
		list = append(list, one...)
	}
	return list, nil
}

func createCaSignedCert(ctx context.Context, c *modules.Call) (any, error) {
	r, err := enter(ctx, c)
	if err != nil {
		return nil, err
	}
	dir := r.base + "/" + r.ca() + "/certs"
	if v := c.Value("cert_path"); pytext.Truth(v) {
		dir = pytext.Str(v)
	}
	cn := pytext.Str(c.Value("CN"))
	request := cn
	if c.Bool("type_ext") {
		if !c.Bool("cert_type") {
			c.Logger().Error("type_ext = True but cert_type is unset. Certificate not written.")
			return map[string]any{}, nil
		}
		request += "_" + pytext.Str(c.Value("cert_type"))
	}
	name := request
	if v := c.Value("cert_filename"); pytext.Truth(v) {
		name = pytext.Str(v)
	}
	if !c.Bool("replace") && r.exists(r.base+"/"+r.ca()+"/certs/"+name+".crt") {
		return `Certificate "` + name + `" already exists`, nil
	}
	missing := func(text string) map[string]any { return map[string]any{"retcode": int64(1), "comment": text} }
	ca, key, err := r.authority()
	if notRead(err) {
		return missing(`There is no CA named "` + r.ca() + `"`), nil
	}
	if err != nil {
		return nil, err
	}
	b, err := r.read(dir + "/" + request + ".csr")
	if notRead(err) {
		return missing(`There is no CSR that matches the CN "` + name + `"`), nil
	}
	if err != nil {
		return nil, err
	}
	raw, err := block(b, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")
	if err != nil {
		return nil, err
	}
	csr, err := pki.CSR(raw)
	if err != nil {
		return nil, sslError("asn1 encoding routines", "wrong tag", "asn1 encoding routines", "nested asn1 error", "PEM routines", "ASN1 lib")
	}
	sum, err := digest(c.Value("digest"))
	if err != nil {
		return nil, err
	}
	cert := pki.Certificate{Subject: csr.RawSubject, Issuer: ca.RawSubject, PublicKey: csr.PublicKey}
	if cert.NotBefore, cert.NotAfter, err = r.span(c.Value("days")); err != nil {
		return nil, err
	}
	if cert.Serial, err = r.newSerial(r.ca()); err != nil {
		return nil, err
	}
	for _, e := range csr.Extensions {
		cert.Extensions = append(cert.Extensions, pki.Extension{ID: e.Id.String(), Critical: e.Critical, Value: e.Value})
	}
	if raw, err = cert.Sign(key, sum); err != nil {
		return nil, err
	}
	if err := r.write(dir+"/"+name+".crt", pki.PEM("CERTIFICATE", raw), 0o644); err != nil {
		return nil, err
	}
	if err := r.index(r.ca(), raw); err != nil {
		return nil, err
	}
	return `Created Certificate for "` + cn + `": "` + dir + "/" + name + `.crt"`, nil
}
