package gpg

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// trustLetter returns the meaning of gpg's letter for the trust in a key, or "" for an unknown letter.
func trustLetter(s string) string {
	switch s {
	case "e":
		return "Expired"
	case "q", "-":
		return "Unknown"
	case "n":
		return "Not Trusted"
	case "f":
		return "Fully Trusted"
	case "m":
		return "Marginally Trusted"
	case "u":
		return "Ultimately Trusted"
	case "r":
		return "Revoked"
	}
	return ""
}

// key is a key of a list.
type key struct {
	id, fingerprint, date, expires, length, ownerTrust, trust string
	uids                                                      []any
	subs                                                      []*key // without uids and fingerprints
}

// unescape undoes how gpg writes characters in lists.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if i+4 <= len(s) && s[i] == '\\' && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteRune(rune(n))
				i += 4
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	s = b.String()
	for _, e := range [...][2]string{{`\n`, "\n"}, {`\r`, "\r"}, {`\f`, "\f"}, {`\v`, "\v"}, {`\b`, "\b"}, {`\0`, "\x00"}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return s
}

// field returns a field of a line. For a missing field it returns "unavailable", as the library does.
func field(f []string, i int) string {
	if i < len(f) {
		return f[i]
	}
	return "unavailable"
}

// list returns the keys of the ring, or the secret keys if secret is set.
func (g *ring) list(secret bool) ([]*key, error) {
	which := "--list-keys"
	if secret {
		which = "--list-secret-keys"
	}
	args := []string{which, "--fingerprint", "--fingerprint"}
	if g.modern() {
		args = append(args, "--with-keygrip")
	}
	a, err := g.run(request{args: args})
	if err != nil {
		return nil, err
	}
	return parseKeys(a.stdout), nil
}

// parseKeys reads a list of keys.
func parseKeys(stdout []byte) []*key {
	var (
		keys []*key
		k    *key
		sub  bool
	)
	entry := func(f []string) *key {
		return &key{id: field(f, 4), date: field(f, 5), expires: field(f, 6), length: field(f, 2), ownerTrust: field(f, 8), trust: field(f, 1), uids: []any{}}
	}
	for _, line := range pytext.SplitLines(fromLatin1(stdout), false) {
		if line == "" {
			break
		}
		f := strings.Split(pytext.Strip(line), ":")
		switch f[0] {
		case "pub", "sec":
			k = entry(f)
			if uid := field(f, 9); uid != "" {
				k.uids = append(k.uids, uid)
			}
			keys, sub = append(keys, k), false
		case "sub", "ssb":
			if sub = true; k != nil {
				k.subs = append(k.subs, entry(f))
			}
		case "fpr":
			if k != nil && !sub {
				k.fingerprint = field(f, 9)
			}
		case "uid":
			if k != nil {
				k.uids = append(k.uids, unescape(field(f, 9)))
			}
		}
	}
	return keys
}

// day converts gpg's time, in seconds, to a day in the local time zone.
func day(s string) (string, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f > 1e12 {
		return "", valueError("could not convert string to float: " + pytext.Repr(s))
	}
	return time.Unix(int64(f), 0).Format(time.DateOnly), nil
}

// show adds the data of a key to m.
func (k *key) show(m map[string]any) error {
	m["keyid"], m["uids"] = k.id, k.uids
	for _, d := range [...]struct{ name, value string }{{"expires", k.expires}, {"created", k.date}} {
		if d.value == "" {
			continue
		}
		text, err := day(d.value)
		if err != nil {
			return err
		}
		m[d.name] = text
	}
	if k.length != "" {
		m["keyLength"] = k.length
	}
	for _, t := range [...]struct{ name, value string }{{"ownerTrust", k.ownerTrust}, {"trust", k.trust}} {
		if t.value == "" {
			continue
		}
		text := trustLetter(t.value)
		if text == "" {
			return &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(t.value)}
		}
		m[t.name] = text
	}
	return nil
}

func listKeys(ctx context.Context, c *modules.Call) (any, error) { return list(ctx, c, false) }

func listSecretKeys(ctx context.Context, c *modules.Call) (any, error) { return list(ctx, c, true) }

func list(ctx context.Context, c *modules.Call, secret bool) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	keys, err := g.list(secret)
	out := make([]any, 0, len(keys))
	for _, k := range keys {
		m := map[string]any{"fingerprint": k.fingerprint}
		if err := k.show(m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, err
}

// readKey shows the keys of a file or text, which need not be in the ring.
func readKey(ctx context.Context, c *modules.Call) (any, error) {
	path, text := c.Value("path"), c.Value("text")
	if !pytext.Truth(path) && !pytext.Truth(text) {
		return nil, modules.Usagef("Either `path` or `text` is required.")
	}
	if pytext.Truth(path) && pytext.Truth(text) {
		return nil, modules.Usagef("`path` and `text` are mutually exclusive.")
	}
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	r := request{args: []string{"--dry-run", "--import-options", "import-show", "--import"}}
	if pytext.Truth(path) {
		r.names = []string{c.Path(pytext.Str(path))}
	} else {
		b, err := latin1(pytext.Str(text))
		if err != nil {
			return nil, err
		}
		r.stdin = bytes.NewReader(b)
	}
	a, err := g.run(r)
	if err != nil {
		return nil, err
	}
	out := []any{}
	id, fingerprint := c.Value("keyid"), c.Value("fingerprint")
	for _, k := range parseKeys(a.stdout) {
		if (pytext.Truth(id) || pytext.Truth(fingerprint)) && any(k.fingerprint) != fingerprint && any(k.id) != id && any(k.short()) != id {
			continue
		}
		m, err := k.whole(c.Now())
		if err != nil {
			return nil, err
		}
		m["fingerprint"] = k.fingerprint
		out = append(out, m)
	}
	return out, nil
}

// whole returns a key in the form of gpg.list_keys: with its subkeys, and whether it has expired.
func (k *key) whole(now time.Time) (map[string]any, error) {
	m := map[string]any{}
	if err := k.show(m); err != nil {
		return nil, err
	}
	if k.expires != "" {
		at, err := strconv.ParseFloat(k.expires, 64)
		m["expired"] = err == nil && float64(now.Unix()) >= at
	}
	var subs []any
	for _, s := range k.subs {
		sub, err := s.whole(now)
		if err != nil {
			return nil, err
		}
		delete(sub, "uids")
		subs = append(subs, sub)
	}
	if subs != nil {
		m["subkeys"] = subs
	}
	return m, nil
}

// short returns the last eight digits of a key's id, by which keys can be selected.
func (k *key) short() string {
	if len(k.id) > 8 {
		return k.id[8:]
	}
	return ""
}

func getKey(ctx context.Context, c *modules.Call) (any, error) { return get(ctx, c, false) }

func getSecretKey(ctx context.Context, c *modules.Call) (any, error) { return get(ctx, c, true) }

func get(ctx context.Context, c *modules.Call, secret bool) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	m, err := g.find(secret, c.Value("keyid"), c.Value("fingerprint"))
	if err != nil || len(m) == 0 {
		return false, err
	}
	return m, nil
}

// find returns the key with an id or fingerprint, or an empty map if it is missing.
func (g *ring) find(secret bool, id, fingerprint any) (map[string]any, error) {
	keys, err := g.list(secret)
	m := map[string]any{}
	for _, k := range keys {
		if any(k.fingerprint) != fingerprint && any(k.id) != id && any(k.short()) != id {
			continue
		}
		m["fingerprint"] = k.fingerprint
		if err := k.show(m); err != nil {
			return nil, err
		}
	}
	return m, err
}

// result returns the result of a function: its success and a message.
func result(ok bool, message string) map[string]any {
	return map[string]any{"res": ok, "message": message}
}

func createKey(ctx context.Context, c *modules.Call) (any, error) { return owned(ctx, c, create) }

func create(ctx context.Context, c *modules.Call) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{"res": false, "fingerprint": "", "message": "gpg_passphrase not available in pillar."}
	protection := "%no-protection"
	if c.Bool("use_passphrase") {
		secret, err := passphrase(ctx, c)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			return ret, nil
		}
		protection = "Passphrase: " + *secret
	}
	var b strings.Builder
	mail := false
	for _, p := range [...][2]string{
		{"Key-Type", "key_type"}, {"Key-Length", "key_length"}, {"Name-Real", "name_real"}, {"Name-Comment", "name_comment"},
		{"Name-Email", "name_email"}, {"Subkey-Type", "subkey_type"}, {"Subkey-Length", "subkey_length"}, {"Expire-Date", "expire_date"},
	} {
		text := pytext.Str(c.Value(p[1]))
		always := strings.HasPrefix(p[0], "Key-") || p[0] == "Name-Real" || p[0] == "Name-Comment"
		if !always && !c.Bool(p[1]) {
			continue
		}
		if strings.ContainsAny(text, "\r\n") {
			return nil, modules.Usagef("%s must not have line breaks: %s", p[1], pytext.Repr(c.Value(p[1])))
		}
		if pytext.Strip(text) == "" {
			switch p[0] {
			case "Key-Type":
				text = "RSA"
			case "Key-Length":
				text = "2048"
			case "Name-Real":
				text = "Autogenerated Key"
			default:
				continue
			}
		}
		mail = mail || p[0] == "Name-Email"
		fmt.Fprintf(&b, "%s: %s\n", p[0], text)
	}
	if strings.HasPrefix(protection, "Passphrase") {
		b.WriteString(protection + "\n")
	}
	if !mail {
		fmt.Fprintf(&b, "Name-Email: %s\n", address(c))
	}
	if strings.HasPrefix(protection, "%") {
		b.WriteString(protection + "\n")
	}
	b.WriteString("%commit\n")
	text, err := latin1(b.String())
	if err != nil {
		return nil, err
	}
	a, err := g.run(request{args: []string{"--gen-key"}, stdin: strings.NewReader(string(text))})
	if err != nil {
		return nil, err
	}
	ret["message"] = "Unable to generate GPG key pair."
	for _, s := range a.status {
		if f := s.fields(2); s.key == "KEY_CREATED" && f[1] != "" {
			ret["res"], ret["fingerprint"], ret["message"] = true, f[1], "GPG key pair successfully generated."
		}
	}
	return ret, nil
}

// address returns the default mail address of a new key.
func address(c *modules.Call) string {
	name := "unspecified"
	for _, v := range [...]string{"USERNAME", "LOGNAME"} {
		if s, _ := c.Context().Getenv(v); s != "" {
			name = s
		}
	}
	host, _ := os.Hostname()
	return strings.ReplaceAll(name, " ", "_") + "@" + host
}

func deleteKey(ctx context.Context, c *modules.Call) (any, error) {
	switch {
	case c.Bool("fingerprint") && c.Bool("keyid"):
		return result(false, "Only specify one argument, fingerprint or keyid"), nil
	case !c.Bool("fingerprint") && !c.Bool("keyid"):
		return result(false, "Required argument, fingerprint or keyid"), nil
	}
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	k, err := g.find(false, c.Value("keyid"), c.Value("fingerprint"))
	if err != nil {
		return nil, err
	}
	if len(k) == 0 {
		return result(false, "Key not available in keychain."), nil
	}
	fpr, message := k["fingerprint"].(string), ""
	sec, err := g.find(true, c.Value("keyid"), fpr)
	if err != nil {
		return nil, err
	}
	if len(sec) > 0 {
		if !c.Bool("delete_secret") {
			return result(false, "Secret key exists, delete first or pass delete_secret=True."), nil
		}
		out, err := g.remove(fpr, true)
		if err != nil {
			return nil, err
		}
		if out != "ok" {
			return result(false, "Failed to delete secret key for "+fpr+": "+out), nil
		}
		message = "Secret key for " + fpr + " deleted\n"
	}
	out, err := g.remove(fpr, false)
	if err != nil {
		return nil, err
	}
	if out != "ok" {
		return result(false, message+"Failed to delete public key for "+fpr+": "+out), nil
	}
	return result(true, message+"Public key for "+fpr+" deleted"), nil
}

// remove deletes a key and returns the problem, or "ok".
func (g *ring) remove(fpr string, secret bool) (string, error) {
	r := request{args: []string{"--delete-key"}, names: []string{fpr}}
	if secret {
		r.args = []string{"--delete-secret-key"}
		if g.modern() {
			r.args = []string{"--yes", "--delete-secret-key"}
		}
		if g.c.Bool("use_passphrase") {
			p, err := passphrase(g.ctx, g.c)
			if err != nil {
				return "", err
			}
			if p == nil {
				return "gpg_passphrase not available in pillar.", nil
			}
			r.passphrase = p
		}
	}
	a, err := g.run(r)
	if err != nil {
		return "", err
	}
	out := "ok"
	for _, s := range a.status {
		if s.key != "DELETE_PROBLEM" {
			continue
		}
		switch s.value {
		case "1":
			out = "No such key"
		case "2":
			out = "Must delete secret key first"
		case "3":
			out = "Ambiguous specification"
		default:
			out = "Unknown error: " + pytext.Repr(s.value)
		}
	}
	return out, nil
}

func importKey(ctx context.Context, c *modules.Call) (any, error) { return owned(ctx, c, take) }

func take(ctx context.Context, c *modules.Call) (any, error) {
	if !c.Bool("text") && !c.Bool("filename") {
		return nil, modules.Usagef("filename or text must be passed.")
	}
	if c.Bool("select") && c.Bool("text") && c.Bool("filename") {
		return nil, modules.Usagef("filename and text are mutually exclusive.")
	}
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	text := c.Value("text")
	if c.Bool("filename") {
		b, err := os.ReadFile(c.Path(c.Str("filename")))
		if err != nil {
			return nil, modules.Usagef("filename does not exist.")
		}
		if text, err = pycodec.UTF8(b); err != nil {
			return nil, err
		}
	}
	switch text.(type) {
	case string, []byte, []any:
	default:
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(text) + "' object is not subscriptable"}
	}
	if c.Bool("select") {
		return g.takeSome(text, c.Value("select"))
	}
	ret, _, err := g.take(text)
	return ret, err
}

// take imports keys and tells whose.
func (g *ring) take(text any) (ret map[string]any, fingerprints []any, err error) {
	stdin, err := input(text)
	if err != nil {
		return nil, nil, err
	}
	a, err := g.run(request{args: []string{"--import"}, stdin: stdin})
	if err != nil {
		return nil, nil, err
	}
	fingerprints = []any{}
	var n [13]int
	for _, s := range a.status {
		switch s.key {
		case "IMPORT_OK":
			fingerprints = append(fingerprints, s.fields(2)[1])
		case "IMPORT_RES":
			f := s.fields(len(n))
			for i := range n {
				n[i], _ = strconv.Atoi(f[i])
			}
		}
	}
	count, imported, rsa, unchanged, not := n[0], n[2], n[3], n[4], n[12]
	switch {
	case imported != 0 || rsa != 0:
		ret = result(true, "Successfully imported key(s).")
	case unchanged != 0:
		ret = result(true, "Key(s) already exist in keychain.")
	case not != 0 || count == 0:
		ret = result(false, "Unable to import key.")
	default:
		ret = result(true, "")
	}
	return ret, fingerprints, nil
}

// takeSome imports the keys of a text that the argument select names. gpg cannot choose, so all keys are first
// imported into a temporary keyring. As in Salt 3008 the result contains the fingerprints.
func (g *ring) takeSome(text, chosen any) (any, error) {
	names, ok := chosen.([]any)
	if !ok {
		names = []any{chosen}
	}
	list, err := words(names)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(g.c.Path(pytemp.Dir()), "__salt.tmp.")
	if err != nil {
		return nil, modules.OSError(err)
	}
	defer os.RemoveAll(dir)
	all := *g
	all.keyring = dir + "/keys"
	ret, fingerprints, err := all.take(text)
	if err != nil {
		return nil, err
	}
	if ret["res"] != true {
		ret["fingerprints"] = fingerprints
		return ret, nil
	}
	a, err := all.run(request{args: []string{"--export", "--armor"}, names: list})
	if err != nil {
		return nil, err
	}
	some := fromLatin1(a.stdout)
	if some == "" {
		ret := result(true, "After filtering, no keys to import were left.")
		ret["fingerprints"] = []any{}
		return ret, nil
	}
	if ret, fingerprints, err = g.take(some); err != nil {
		return nil, err
	}
	ret["fingerprints"] = fingerprints
	return ret, nil
}

// words returns the names in an argument: the elements of a list, or the parts of a text between commas.
func words(v any) ([]string, error) {
	switch v := v.(type) {
	case string:
		return strings.Split(v, ","), nil
	case []any:
		var out []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, notPath(x)
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, notPath(v)
}

func notPath(v any) error {
	return &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(v)}
}

func exportKey(ctx context.Context, c *modules.Call) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	secret, err := needed(ctx, c, c.Bool("secret") && c.Bool("use_passphrase"))
	if err != nil {
		return nil, err
	}
	names, err := words(c.Value("keyids"))
	if err != nil {
		return nil, err
	}
	which := "--export"
	if c.Bool("secret") {
		which = "--export-secret-key"
	}
	a, err := g.run(request{args: []string{which, "--armor"}, names: names, passphrase: secret})
	if err != nil {
		return nil, err
	}
	text := fromLatin1(a.stdout)
	if text == "" {
		if c.Bool("bare") {
			return false, nil
		}
		return map[string]any{"res": false}, nil
	}
	if c.Bool("output") {
		if err := os.WriteFile(c.Path(c.Str("output")), []byte(text), 0o666); err != nil {
			return nil, modules.OSError(err)
		}
	}
	switch {
	case c.Bool("bare"):
		return text, nil
	case c.Bool("output"):
		return map[string]any{"res": true, "comment": "Exported key data has been written to " + c.Str("output")}, nil
	}
	return map[string]any{"res": true, "comment": text}, nil
}

// trustLevel returns the number of a level of trust, or "" for an unknown level.
func trustLevel(v any) string {
	for i, name := range trustLevels() {
		if v == any(name) {
			return strconv.Itoa(i + 1)
		}
	}
	return ""
}

func trustLevels() []string {
	return []string{"expired", "unknown", "not_trusted", "marginally", "fully", "ultimately"}
}

func trustText(level string) string {
	switch level {
	case "1":
		return "Expired"
	case "2":
		return "Unknown"
	case "3":
		return "Not Trusted"
	case "4":
		return "Marginally"
	case "5":
		return "Fully Trusted"
	}
	return "Ultimately Trusted"
}

func trustKey(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("keyid") == c.Bool("fingerprint") {
		return nil, modules.Usagef("Exactly one of keyid or fingerprint is required")
	}
	level := trustLevel(c.Value("trust_level"))
	if level == "" {
		return nil, modules.Usagef("ERROR: Valid trust levels - %s", strings.Join(trustLevels(), ","))
	}
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	k, err := g.find(false, c.Value("keyid"), c.Value("fingerprint"))
	if err != nil {
		return nil, err
	}
	if len(k) == 0 {
		return result(false, "Key "+c.Str("keyid")+c.Str("fingerprint")+" not in GPG keychain"), nil
	}
	fpr, _ := k["fingerprint"].(string)
	a, err := g.run(request{args: []string{"--import-ownertrust"}, stdin: strings.NewReader(fpr + ":" + level + ":\n")})
	if err != nil {
		return nil, err
	}
	if a.code != 0 {
		return nil, valueError("gpg returned an error - return code " + strconv.Itoa(a.code))
	}
	ret := result(true, "Setting ownership trust to "+trustText(level)+".")
	ret["fingerprint"] = fpr
	return ret, nil
}
