// Package linux_acl is Salt's execution module "acl". Salt's source: salt/modules/linux_acl.py.
package linux_acl

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	return e.Which("getfacl") != "", "The linux_acl execution module cannot be loaded: the getfacl binary is not in the path."
}

func version(ctx context.Context, c *modules.Call) (any, error) {
	out, err := saltcmd.Text(ctx, c, "getfacl", "--version")
	if err != nil {
		return nil, err
	}
	f := strings.Fields(strings.Split(out, "\n")[0])
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	return f[1], nil
}

// run calls a program on the files of the call, with -R when they are to be walked.
func run(ctx context.Context, c *modules.Call, program string, args ...any) (saltcmd.Result, error) {
	if len(c.Extra) == 0 {
		return saltcmd.Result{}, modules.Errorf("You need to specify at least one file or directory to work with!")
	}
	cmd := []any{program}
	if pytext.Truth(c.Keywords["recursive"]) {
		cmd = append(cmd, "-R")
	}
	cmd = append(append(append(cmd, args...), "--"), c.Extra...)
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: saltcmd.Words(cmd...), Merge: true})
}

func wipefacls(ctx context.Context, c *modules.Call) (any, error) {
	_, err := run(ctx, c, "setfacl", "-b")
	return err == nil, err
}

// prefix returns the short form of an entry's type.
func prefix(c *modules.Call) (string, error) {
	kind, ok := c.Value("acl_type").(string)
	if !ok {
		return "", modules.NoAttribute(c.Value("acl_type"), "startswith")
	}
	out := ""
	if strings.HasPrefix(kind, "d") {
		out, kind = "d:", strings.ReplaceAll(strings.ReplaceAll(kind, "default:", ""), "d:", "")
	}
	switch kind {
	case "user", "u", "group", "g", "mask", "m":
		out += kind[:1]
	}
	return out, nil
}

func modfacl(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		_, err := run(ctx, c, "setfacl")
		return nil, err
	}
	p, err := prefix(c)
	if err != nil {
		return nil, err
	}
	entry := p + ":" + pytext.Str(c.Value("acl_name")) + ":" + pytext.Str(c.Value("perms"))
	r, err := run(ctx, c, "setfacl", "-m", entry)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 && pytext.Truth(c.Keywords["raise_err"]) {
		return nil, modules.Errorf("%s", r.Stdout)
	}
	return true, nil
}

func delfacl(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		_, err := run(ctx, c, "setfacl")
		return nil, err
	}
	p, err := prefix(c)
	if err != nil {
		return nil, err
	}
	_, err = run(ctx, c, "setfacl", "-x", p+":"+pytext.Str(c.Value("acl_name")))
	return err == nil, err
}

func getfacl(ctx context.Context, c *modules.Call) (any, error) {
	r, err := run(ctx, c, "getfacl", "--absolute-names")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	var file map[string]any
	for _, line := range r.Lines() {
		switch {
		case line == "" || strings.HasPrefix(line, "getfacl"):
		case strings.HasPrefix(line, "#"):
			key, value, ok := strings.Cut(strings.ReplaceAll(line, "# ", ""), ": ")
			if !ok {
				return nil, modules.IndexError()
			}
			if key == "file" {
				file = map[string]any{"comment": map[string]any{}, "user": []any{}, "group": []any{}}
				out[value] = file
			}
			if file == nil {
				return nil, &modules.PythonError{Type: "KeyError", Msg: "''"}
			}
			file["comment"].(map[string]any)[key] = value
			if key == "flags" && len(value) > 2 {
				for i, name := range [...]string{"suid", "sgid", "sticky"} {
					if value[i] == "sst"[i] {
						file[name] = true
					}
				}
			}
		case file != nil:
			if err := addEntry(file, line); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// addEntry puts an entry such as "default:user:anna:rwx" into the description of a file.
func addEntry(file map[string]any, line string) error {
	f := strings.Split(line, ":")
	comment := file["comment"].(map[string]any)
	into := file
	if f[0] == "default" {
		f = f[1:]
		if file["defaults"] == nil {
			file["defaults"] = map[string]any{}
		}
		into = file["defaults"].(map[string]any)
	}
	if len(f) < 2 {
		return modules.IndexError()
	}
	name := f[1]
	if name == "" && f[0] == "user" {
		name, _ = comment["owner"].(string)
	} else if name == "" && f[0] == "group" {
		name, _ = comment["group"].(string)
	}
	octal, perms := int64(0), map[string]any{}
	for i, p := range [...]struct{ letter, name string }{{"r", "read"}, {"w", "write"}, {"x", "execute"}} {
		has := strings.Contains(f[len(f)-1], p.letter)
		if perms[p.name] = has; has {
			octal += 4 >> i
		}
	}
	entry := map[string]any{"permissions": perms, "octal": octal}
	switch f[0] {
	case "user", "group":
		list, _ := into[f[0]].([]any)
		into[f[0]] = append(list, map[string]any{name: entry})
	case "other", "mask":
		into[f[0]] = []any{map[string]any{"": entry}}
	}
	return nil
}
