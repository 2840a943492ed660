package gpg

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// keyserver returns the server of the call, or the default one.
func keyserver(c *modules.Call) string {
	if c.Bool("keyserver") {
		return c.Str("keyserver")
	}
	return "keys.openpgp.org"
}

func receiveKeys(ctx context.Context, c *modules.Call) (any, error) { return owned(ctx, c, receive) }

func receive(ctx context.Context, c *modules.Call) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Value("keys") == nil {
		return nil, &modules.TypeError{Msg: "Value after * must be an iterable, not NoneType"}
	}
	names, err := words(c.Value("keys"))
	if err != nil {
		return nil, err
	}
	a, err := g.run(request{args: []string{"--keyserver=" + keyserver(c), "--recv-keys"}, names: names})
	if err != nil {
		return nil, err
	}
	lines, got, not := []any{}, 0, "0"
	unable := func(text string) { lines = append(lines, "Unable to add key to keychain: "+text) }
	for _, s := range a.status {
		f := s.fields(13)
		switch s.key {
		case "NODATA":
			unable("No valid data found")
		case "KEYEXPIRED":
			unable("Key expired")
		case "SIGEXPIRED":
			unable("Signature expired")
		case "FAILURE":
			unable("Other failure")
		case "IMPORT_PROBLEM":
			unable(importProblem(f[0]))
		case "IMPORT_RES":
			not = f[12]
		case "IMPORT_OK":
			got++
			switch f[0] {
			case "1":
				lines = append(lines, "Key "+f[1]+" added to keychain")
			case "0":
				lines = append(lines, "Key "+f[1]+" already exists in keychain")
			}
		}
	}
	ok := got > 0 && (not == "0" || not == "")
	if !ok {
		lines = append(lines, "GPG reported failure: "+a.stderr)
	}
	return map[string]any{"res": ok, "message": lines}, nil
}

// importProblem returns the reason why gpg rejected a key, from its code.
func importProblem(code string) string {
	switch code {
	case "1":
		return "Invalid Certificate"
	case "2":
		return "Issuer Certificate missing"
	case "3":
		return "Certificate Chain too long"
	case "4":
		return "Error storing certificate"
	}
	return "No specific reason given"
}

func searchKeys(ctx context.Context, c *modules.Call) (any, error) {
	g, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	query, ok := c.Value("text").(string)
	if !ok {
		return nil, modules.NoAttribute(c.Value("text"), "strip")
	}
	query = pytext.Strip(query)
	if query != "" && strings.Trim(query, "0123456789abcdefABCDEF") == "" {
		query = "0x" + query
	}
	a, err := g.run(request{args: []string{"--fingerprint", "--keyserver=" + keyserver(c), "--search-keys"}, names: []string{query}})
	if err != nil {
		return nil, err
	}
	out := []any{}
	var last map[string]any
	for _, line := range pytext.SplitLines(fromLatin1(a.stdout), false) {
		f := strings.Split(pytext.Strip(line), ":")
		switch f[0] {
		case "pub":
			k := key{id: field(f, 1), length: field(f, 3), date: field(f, 4), expires: field(f, 5), uids: []any{}}
			last = map[string]any{}
			if err := k.show(last); err != nil {
				return nil, err
			}
			out = append(out, last)
		case "uid":
			if last != nil {
				last["uids"] = append(last["uids"].([]any), unescape(field(f, 1)))
			}
		}
	}
	return out, nil
}
