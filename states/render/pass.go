package render

import (
	"context"
	"os/user"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// renderPass replaces the texts that are paths in the password store by their secrets, with the program pass
// (salt/renderers/pass.py). A text that no renderer has turned into data stays as it is, as in Salt.
func renderPass(ctx context.Context, c *modules.Call, t *modules.Template, in any, _ string) (any, error) {
	switch in.(type) {
	// Text is returned unchanged unless it comes from data.
	case string, pyobj.Markup:
		if t.Data == nil {
			return in, nil
		}
	}
	p := &pass{ctx: ctx, c: c}
	return eachText(in, func(v any) (any, error) {
		if s, ok := v.(string); ok {
			return p.fetchSecret(s)
		}
		return v, nil // bytes cannot be a path
	})
}

// pass is one run of the renderer.
type pass struct {
	ctx context.Context
	c   *modules.Call
}

// requiredOption returns one of the renderer's options. Only a master has defaults for them; elsewhere stock fails
// with KeyError.
func (p *pass) requiredOption(name string) (any, error) {
	v := p.c.Opt(name)
	if v == nil {
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	}
	return v, nil
}

// fetchSecret returns the secret at a path of the password store. If the store has no secret there it returns the
// path itself, or an error if pass_strict_fetch is set.
func (p *pass) fetchSecret(text string) (any, error) {
	program := p.c.Which("pass")
	if program == "" {
		return nil, &modules.RenderError{Msg: "pass unavailable", Text: "pass unavailable"}
	}
	prefixed, err := p.requiredOption("pass_variable_prefix")
	if err != nil {
		return nil, err
	}
	// Only texts with the prefix are paths.
	prefix, _ := prefixed.(string)
	if !strings.HasPrefix(text, prefix) {
		return text, nil
	}
	strict, err := p.requiredOption("pass_strict_fetch")
	if err != nil {
		return nil, err
	}
	// Without a prefix every text would have to be a path.
	if pytext.Truth(strict) && prefix == "" {
		return nil, &modules.PythonError{Type: "salt.exceptions.SaltConfigurationError", Msg: "The 'pass_strict_fetch' option requires 'pass_variable_prefix' option enabled"}
	}
	path := pytext.Strip(text[len(prefix):])
	// pass needs HOME, which a service may lack.
	var env []string
	if _, ok := p.c.Context().Getenv("HOME"); !ok {
		if u, err := user.Current(); err == nil {
			env = append(env, "HOME="+u.HomeDir)
		}
	}
	// pass takes its directories from the environment.
	for _, o := range [...][2]string{{"pass_dir", "PASSWORD_STORE_DIR"}, {"pass_gnupghome", "GNUPGHOME"}} {
		v, err := p.requiredOption(o[0])
		if err != nil {
			return nil, err
		}
		if pytext.Truth(v) {
			env = append(env, o[1]+"="+pytext.Str(v))
		}
	}
	res, err := p.c.Cmd(p.ctx, modules.Command{Args: []string{program, "show", path}, Env: env, Limit: maxPlain, Dir: "/"})
	out, said := string(res.Stdout), string(res.Stderr)
	switch {
	case err != nil:
		out, said = "", err.Error()
	case !utf8.ValidString(out) || !utf8.ValidString(said):
		out, said = "", "the password store's answer is not UTF-8"
	}
	// No output is a failure as well, because an empty secret cannot be distinguished from a missing one.
	if err != nil || res.ExitCode != 0 || out == "" {
		msg := "Could not fetch secret '" + path + "' from the password store: " + unixNewlines(said)
		if pytext.Truth(strict) {
			return nil, &modules.RenderError{Msg: msg, Text: msg}
		}
		p.c.Logger().Warn(msg)
		return text, nil
	}
	return strings.TrimRight(unixNewlines(out), "\n"), nil
}

// unixNewlines reads line ends as Python's universal newlines do.
func unixNewlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
