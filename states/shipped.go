package states

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxCode is the maximum size in bytes of a code file whose names are read.
const maxCode = 1 << 20

// noteShipped records and logs the code in an environment's tree that this host does not run.
func (h *HighState) noteShipped(env string, listing []string) {
	if h.shipped == nil {
		h.shipped = map[string][]owncode.File{}
	}
	list := owncode.NotRun(h.env, env, listing)
	h.shipped[env] = list
	if len(list) > 0 {
		h.env.Logger().Warn(owncode.Notice(list))
	}
}

// shippedOf returns the recorded code files of one kind, from all environments examined so far.
func (r *Run) shippedOf(kind string) []owncode.File {
	var list []owncode.File
	for _, files := range r.shipped {
		for _, f := range files {
			if f.Kind == kind {
				list = append(list, f)
			}
		}
	}
	sorting.Stable(list, func(a, b owncode.File) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// code returns the text of a code file, or "" if it cannot be read. The code is not run.
func (r *Run) code(ctx context.Context, f owncode.File) string {
	path, err := r.env.Files.Cache(ctx, "salt://"+f.Path, f.SaltEnv)
	if err != nil || path == "" {
		return ""
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxCode {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

var virtualName = regexp.MustCompile(`(?m)^__virtualname__\s*=\s*["']([^"']+)["']`)

// shippedState returns the file that would define a state module, or "" if there is none.
func (r *Run) shippedState(state string) string {
	for _, f := range r.shippedOf("states") {
		m := virtualName.FindStringSubmatch(r.code(context.Background(), f))
		if f.Name == state || m != nil && m[1] == state {
			return f.Path + " defines it, code that the state tree distributes and this minion does not run. To use it, " + f.Cure() +
				" (docs/custom-code.md)"
		}
	}
	return ""
}

// lacksGrain returns the file in the tree that would define one of the grains, if this host lacks the grain.
// States that depend on it must fail.
func (h *HighState) lacksGrain(ctx context.Context, what, env string, grains []string) (string, error) {
	have := h.call.GrainData()
	grains = slices.DeleteFunc(grains, func(name string) bool { _, ok := have[name]; return ok })
	if len(grains) == 0 {
		return "", nil
	}
	if _, err := h.listSLS(ctx, env); err != nil {
		return "", err
	}
	for _, f := range h.shippedOf("grains") {
		text := h.code(ctx, f)
		for _, name := range grains {
			if owncode.Mentions(text, name) {
				return f.Missing(what, name), nil
			}
		}
	}
	return "", nil
}

// topGrains returns the grains that a target of a top file uses.
func topGrains(kind, tgt string) []string {
	key := func(text string) string { name, _, _ := strings.Cut(text, ":"); return name }
	switch kind {
	case "grain", "grain_pcre":
		return []string{key(tgt)}
	case "compound":
		var names []string
		for _, word := range strings.FieldsFunc(tgt, func(r rune) bool { return strings.ContainsRune(" ()", r) }) {
			if rest, ok := strings.CutPrefix(word, "G@"); ok {
				names = append(names, key(rest))
			} else if rest, ok := strings.CutPrefix(word, "P@"); ok {
				names = append(names, key(rest))
			}
		}
		return names
	}
	return nil
}

// matchKind returns how a target of a top file is matched.
func matchKind(data []any) string {
	kind := "compound"
	for _, x := range data {
		if d, ok := x.(*pyobj.Dict); ok && d.Has("match") {
			kind = pyobj.Str(d.Value("match"))
		}
	}
	return kind
}

// Lacks returns what the top file needs from code that the tree distributes and this host does not run. It is
// complete after Matches.
func (h *HighState) Lacks() []string { return h.lacks }
