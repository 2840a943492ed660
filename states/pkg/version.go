package pkg

import (
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// condition is one of those that a version has to meet.
type condition struct{ oper, version string }

func conditions(text string) []condition {
	text = pytext.Strip(text)
	if text == "" {
		return nil
	}
	var out []condition
	for _, part := range strings.Split(text, ",") {
		oper, version := pkgversion.SplitComparison(pytext.Strip(part))
		if oper == "=" || oper == "" {
			oper = "=="
		}
		out = append(out, condition{oper, version})
	}
	return out
}

// fulfils reports whether one of the installed versions meets all conditions.
func (t *task) fulfils(installed []string, wanted any, epoch any, updates bool) (bool, error) {
	list := conditions(pytext.Str(wanted))
	for _, have := range installed {
		all := true
		for _, want := range list {
			if !all {
				break
			}
			if updates && len(list) == 1 && want.oper == "==" {
				want.oper = ">="
			}
			ok, err := t.meets(have, want, epoch)
			if err != nil {
				return false, err
			}
			all = ok
		}
		if all {
			return true, nil
		}
	}
	return false, nil
}

func (t *task) meets(have string, want condition, epoch any) (bool, error) {
	if want.oper == "==" && fnmatch.Match(want.version, have) {
		return true, nil
	}
	switch want.oper {
	case "<", "<=", "==", ">=", ">", "!=":
	default:
		t.Logger().Error("Invalid operator for the comparison of versions", "operator", want.oper)
		return false, nil
	}
	if epoch == nil {
		epoch = !strings.ContainsAny(want.oper, "<>") && !strings.Contains(want.version, ":")
	}
	if !t.has("pkg.version_cmp") {
		a, b := have, want.version
		if pytext.Truth(epoch) {
			a, b = pkgversion.WithoutEpoch(a), pkgversion.WithoutEpoch(b)
		}
		return pkgversion.Holds(a, want.oper, b, pkgversion.Loose), nil
	}
	v, err := t.exec("pkg.version_cmp", []any{have, want.version}, map[string]any{"ignore_epoch": epoch})
	if err != nil || v == nil {
		return false, err
	}
	n, err := modules.ToInt(v)
	if err != nil {
		return false, nil
	}
	return pkgversion.Holds("", want.oper, "", func(_, _ string) (int, bool) { return int(n), true }), nil
}
