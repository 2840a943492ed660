// Package gem is Salt's execution module "gem": packages of Ruby. Salt's source: salt/modules/gem.py.
package gem

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// run runs gem: the one that is named, that of rvm or rbenv where their modules find them, or the host's.
func run(ctx context.Context, c *modules.Call, words ...string) (string, error) {
	bin := c.Str("gem_bin")
	cmd := append([]string{"gem"}, words...)
	if bin != "" {
		cmd[0] = bin
	}
	if c.Value("gem_bin") == nil {
		for _, m := range []string{"rvm", "rbenv"} {
			if !pkglist.Has(c, m+".is_installed") {
				continue
			}
			as := map[string]any{"runas": c.Value("runas")}
			if is, err := c.ExecKw(ctx, m+".is_installed", nil, as); err != nil || !pytext.Truth(is) {
				if err != nil {
					return "", err
				}
				continue
			}
			fun, args := m+".do", []any{c.Value("ruby"), nested.Anys(cmd)}
			if m == "rbenv" && c.Value("ruby") == nil {
				args = args[1:]
			} else if m == "rbenv" {
				fun += "_with_ruby"
			}
			v, err := c.ExecKw(ctx, fun, args, as)
			if text, ok := v.(string); ok {
				return text, err
			}
			return "", err
		}
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, RunAs: c.Str("runas")})
	if err == nil && out.Retcode != 0 {
		err = modules.Errorf("%s", out.Stderr)
	}
	return out.Stdout, err
}

// named returns the gems of the call: the elements of a list, or the words of a text.
func named(c *modules.Call) []string {
	switch v := c.Value("gems").(type) {
	case []any:
		return pkglist.SplitInput(v)
	default:
		return strings.Fields(pytext.Str(v))
	}
}

func answer(text string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return text, nil
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	var opts []string
	if c.Bool("version") {
		opts = append(opts, "--version", c.Str("version"))
	}
	have, err := version(ctx, c)
	if err != nil {
		return nil, err
	}
	if have == "" {
		return nil, &modules.TypeError{Msg: "expected string or bytes-like object, got 'dict'"}
	}
	if strings.HasPrefix(have, "3.") {
		if !c.Bool("rdoc") || !c.Bool("ri") {
			opts = append(opts, "--no-document")
		}
		if c.Bool("pre_releases") {
			opts = append(opts, "--prerelease")
		}
	} else {
		if !c.Bool("rdoc") {
			opts = append(opts, "--no-rdoc")
		}
		if !c.Bool("ri") {
			opts = append(opts, "--no-ri")
		}
		if c.Bool("pre_releases") {
			opts = append(opts, "--pre")
		}
	}
	if c.Bool("proxy") {
		opts = append(opts, "-p", c.Str("proxy"))
	}
	if c.Bool("source") {
		opts = append(opts, "--source", c.Str("source"))
	}
	return answer(run(ctx, c, append(append([]string{"install"}, named(c)...), opts...)...))
}

func uninstall(ctx context.Context, c *modules.Call) (any, error) {
	return answer(run(ctx, c, append(append([]string{"uninstall"}, named(c)...), "-a", "-x")...))
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	return answer(run(ctx, c, append([]string{"update"}, named(c)...)...))
}

func updateSystem(ctx context.Context, c *modules.Call) (any, error) {
	return answer(run(ctx, c, "update", "--system", c.Str("version")))
}

// version returns the first line of the output of gem --version that begins like a version, or "" if it is missing.
func version(ctx context.Context, c *modules.Call) (string, error) {
	text, err := run(ctx, c, "--version")
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && strings.ContainsAny(line[:1], ".0123456789") {
			return line, err
		}
	}
	return "", err
}

func versionRun(ctx context.Context, c *modules.Call) (any, error) {
	v, err := version(ctx, c)
	if v == "" && err == nil {
		return map[string]any{}, nil
	}
	return answer(v, err)
}

var installedLine = lazyre.Regexp{Expr: `^([^ ]+) \((.+)\)`}

func list(ctx context.Context, c *modules.Call) (any, error) {
	words := []string{"list"}
	if c.Bool("prefix") {
		words = append(words, c.Str("prefix"))
	}
	text, err := run(ctx, c, words...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for line := range strings.SplitSeq(text, "\n") {
		if m := installedLine.Get().FindStringSubmatch(line); m != nil {
			ret[m[1]] = nested.Anys(strings.Split(m[2], ", "))
		}
	}
	return ret, nil
}

var outdatedLine = lazyre.Regexp{Expr: `(\S+) \(\S+ < (\S+)\)`}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	text, err := run(ctx, c, "outdated")
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for line := range strings.SplitSeq(text, "\n") {
		if m := outdatedLine.Get().FindStringSubmatch(line); m != nil {
			ret[m[1]] = m[2]
		}
	}
	return ret, nil
}

func sourcesAdd(ctx context.Context, c *modules.Call) (any, error) {
	return answer(run(ctx, c, "sources", "--add", c.Str("source_uri")))
}

func sourcesRemove(ctx context.Context, c *modules.Call) (any, error) {
	return answer(run(ctx, c, "sources", "--remove", c.Str("source_uri")))
}

func sourcesList(ctx context.Context, c *modules.Call) (any, error) {
	text, err := run(ctx, c, "sources")
	if err != nil {
		return nil, err
	}
	lines := pytext.SplitLines(text, false)
	return nested.Anys(lines[min(2, len(lines)):]), nil
}
