package render

import (
	"context"
	"os/user"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// renderPass puts what the password store has in the place of texts that are paths in it, with the program pass
// (salt/renderers/pass.py). A text that no renderer made data of stays as it is, as in Salt.
func renderPass(ctx context.Context, c *modules.Call, t *modules.Template, in any, _ string) (any, error) {
	switch in.(type) {
	case string, pyobj.Markup:
		if t.Data == nil {
			return in, nil
		}
	}
	p := &pass{ctx: ctx, c: c}
	return eachText(in, func(v any) (any, error) {
		if s, ok := v.(string); ok {
			return p.secret(s)
		}
		return v, nil // bytes are no path
	})
}

type pass struct {
	ctx context.Context
	c   *modules.Call
}

// option is one of the renderer's options, of which only a master has defaults.
func (p *pass) option(name string) (any, error) {
	v := p.c.Opt(name)
	if v == nil {
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
	}
	return v, nil
}

// secret gives what is at a path of the password store; the path itself if there is nothing, unless pass_strict_fetch is set.
func (p *pass) secret(text string) (any, error) {
	program := p.c.Which("pass")
	if program == "" {
		return nil, &modules.RenderError{Msg: "pass unavailable", Text: "pass unavailable"}
	}
	prefixed, err := p.option("pass_variable_prefix")
	if err != nil {
		return nil, err
	}
	prefix, _ := prefixed.(string)
	if !strings.HasPrefix(text, prefix) {
		return text, nil
	}
	strict, err := p.option("pass_strict_fetch")
	if err != nil {
		return nil, err
	}
	if pytext.Truth(strict) && prefix == "" {
		return nil, &modules.PythonError{Type: "salt.exceptions.SaltConfigurationError", Msg: "The 'pass_strict_fetch' option requires 'pass_variable_prefix' option enabled"}
	}
	path := pytext.Strip(text[len(prefix):])
	var env []string
	if _, ok := p.c.Context().Getenv("HOME"); !ok {
		if u, err := user.Current(); err == nil {
			env = append(env, "HOME="+u.HomeDir)
		}
	}
	for _, o := range [...][2]string{{"pass_dir", "PASSWORD_STORE_DIR"}, {"pass_gnupghome", "GNUPGHOME"}} {
		v, err := p.option(o[0])
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
	if err != nil || res.ExitCode != 0 || out == "" {
		msg := "Could not fetch secret '" + path + "' from the password store: " + newlines(said)
		if pytext.Truth(strict) {
			return nil, &modules.RenderError{Msg: msg, Text: msg}
		}
		p.c.Logger().Warn(msg)
		return text, nil
	}
	return strings.TrimRight(newlines(out), "\n"), nil
}

// newlines reads ends of lines as Python does of a program's text.
func newlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
