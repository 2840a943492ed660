//go:build unix

package file

import (
	"maps"
	"os"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// sourced is a source with its hash, either of them None.
type sourced struct{ source, hash any }

// unifySources implements _unify_sources_and_hashes: it makes a list of sources from the four arguments that may name
// them. wrong is the reason if the arguments contradict each other.
func unifySources(source, hash, sources, hashes any) (list []sourced, wrong string) {
	switch {
	case pytext.Truth(source) && pytext.Truth(sources):
		return nil, "source and sources are mutually exclusive"
	case pytext.Truth(hash) && pytext.Truth(hashes):
		return nil, "source_hash and source_hashes are mutually exclusive"
	case pytext.Truth(source):
		return []sourced{{source, hash}}, ""
	}
	names, _ := sources.([]any)
	sums, _ := hashes.([]any)
	for i, name := range names {
		one := sourced{source: name}
		if i < len(sums) {
			one.hash = sums[i]
		}
		list = append(list, one)
	}
	return list, ""
}

// templateTexts implements _get_template_texts: it returns the texts of sources, each rendered as a template. If a
// source cannot be fetched, failed is that source and comment the reason. more are further variables of the
// templates.
func (j *job) templateTexts(list []sourced, template, defaults, context any, more map[string]any) (texts []string, failed any, comment string, err error) {
	vars := map[string]any{}
	for _, layer := range [...]any{defaults, context} {
		m, ok := layer.(map[string]any)
		if pytext.Truth(layer) && !ok {
			return nil, nil, "", &modules.TypeError{Msg: "'" + modules.TypeName(layer) + "' object is not iterable"}
		}
		maps.Copy(vars, m)
	}
	for _, one := range list {
		kwargs := map[string]any{"template": template, "saltenv": j.Saltenv(), "context": vars}
		maps.Copy(kwargs, more)
		path, err := j.execKw("cp.get_template", []any{one.source, ""}, kwargs)
		if err != nil {
			return nil, nil, "", err
		}
		file, _ := path.(string)
		if file == "" {
			return nil, one.source, "Failed to load template file " + pytext.Str(one.source), nil
		}
		text, err := os.ReadFile(j.Path(file))
		if err != nil {
			return nil, nil, "", modules.OSError(err)
		}
		if len(text) == 0 {
			return nil, one.source, "Failed to read rendered template file " + file + " (" + pytext.Str(one.source) + ")", nil
		}
		texts = append(texts, string(text))
	}
	return texts, nil, "", nil
}
