// Package dig is Salt's execution module "dig". Salt's source: salt/modules/dig.py.
package dig

import (
	"context"
	"net/netip"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// dig.SPF differs: records that include each other without end are an error of their own.

func available(e *modules.Env) (bool, string) {
	return e.Which("dig") != "", "The dig execution module cannot be loaded: the dig binary is not in the path."
}

// ask runs dig and returns its output; ok is false if it fails.
func ask(ctx context.Context, c *modules.Call, words ...any) (string, bool, error) {
	cmd := append([]any{"dig", "+short"}, words...)
	if v := c.Value("nameserver"); v != nil {
		cmd = append(cmd, "@"+pytext.Str(v))
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err == nil && r.Retcode != 0 {
		c.Logger().Warn("Dig failed", "retcode", r.Retcode)
	}
	return r.Stdout, err == nil && r.Retcode == 0, err
}

func checkIP(_ context.Context, c *modules.Call) (any, error) {
	text, ok := c.Value("addr").(string)
	return ok && isAddress(text), nil
}

// isAddress reports whether a text is an address, also with a number of bits.
func isAddress(text string) bool {
	i := strings.LastIndexByte(text, '/')
	bits := ""
	if i >= 0 {
		text, bits = text[:i], text[i+1:]
	}
	a, err := netip.ParseAddr(text)
	if err != nil || i < 0 {
		return err == nil
	}
	n, err := modules.ToInt(bits)
	if a.Is4() {
		return err == nil && n >= 1 && n <= 32
	}
	return err == nil && n >= 8 && n <= 128
}

func lookupA(ctx context.Context, c *modules.Call) (any, error) {
	return addresses(ctx, c, c.Value("host"), "A")
}

func lookupAAAA(ctx context.Context, c *modules.Call) (any, error) {
	return addresses(ctx, c, c.Value("host"), "AAAA")
}

func addresses(ctx context.Context, c *modules.Call, host any, kind string) ([]any, error) {
	text, ok, err := ask(ctx, c, host, kind)
	out := []any{}
	for _, line := range strings.Split(text, "\n") {
		if ok && isAddress(line) {
			out = append(out, line)
		}
	}
	return out, err
}

func lookupPTR(ctx context.Context, c *modules.Call) (any, error) {
	return answers(ctx, c, "-x", c.Value("host"))
}

func lookupTXT(ctx context.Context, c *modules.Call) (any, error) {
	return answers(ctx, c, c.Value("host"), "TXT")
}

func answers(ctx context.Context, c *modules.Call, words ...any) (any, error) {
	text, ok, err := ask(ctx, c, words...)
	out := []any{}
	if !ok {
		return out, err
	}
	for _, line := range strings.Split(text, "\n") {
		out = append(out, line)
	}
	return out, nil
}

func lookupCNAME(ctx context.Context, c *modules.Call) (any, error) {
	text, ok, err := ask(ctx, c, c.Value("host"), "CNAME")
	if !ok {
		return []any{}, err
	}
	return text, nil
}

func lookupNS(ctx context.Context, c *modules.Call) (any, error) {
	v, err := answers(ctx, c, c.Value("domain"), "NS")
	if err != nil || !c.Bool("resolve") {
		return v, err
	}
	out := []any{}
	for _, host := range v.([]any) {
		list, err := addresses(ctx, c, host, "A")
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func lookupMX(ctx context.Context, c *modules.Call) (any, error) {
	v, err := answers(ctx, c, c.Value("domain"), "MX")
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, line := range v.([]any) {
		f := strings.Fields(line.(string))
		entry := []any{}
		for _, w := range f {
			entry = append(entry, w)
		}
		if c.Bool("resolve") {
			if len(f) < 2 {
				return nil, modules.IndexError()
			}
			list, err := addresses(ctx, c, f[1], "A")
			if err != nil {
				return nil, err
			}
			if len(list) == 0 {
				return nil, modules.IndexError()
			}
			entry = []any{f[0], list[0]}
		}
		out = append(out, entry)
	}
	return out, nil
}

func lookupSPF(ctx context.Context, c *modules.Call) (any, error) {
	left := 100
	return spf(ctx, c, c.Value("domain"), c.Str("record"), &left)
}

// spf follows a record with all that it includes, as long as there are lookups left.
func spf(ctx context.Context, c *modules.Call, domain any, record string, left *int) ([]any, error) {
	if *left--; *left < 0 {
		return nil, modules.Errorf("the SPF records of %s lead to too many others", pytext.Str(c.Value("domain")))
	}
	text, ok, err := ask(ctx, c, domain, record)
	if !ok {
		return []any{}, err
	}
	if text == "" && record == "SPF" {
		return spf(ctx, c, domain, "TXT", left)
	}
	f := strings.Fields(strings.ReplaceAll(text, `"`, ""))
	if len(f) == 0 || f[0] != "v=spf1" {
		return []any{}, nil
	}
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	if to, ok := strings.CutPrefix(f[1], "redirect="); ok {
		return spf(ctx, c, to, "SPF", left)
	}
	out := []any{}
	for _, section := range f[1:] {
		kind, address, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(section, "+"), "~"), ":")
		switch {
		case address == "":
		case kind == "include":
			more, err := spf(ctx, c, address, "SPF", left)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case (kind == "ip4" || kind == "ip6") && isAddress(address):
			out = append(out, address)
		}
	}
	return out, nil
}
