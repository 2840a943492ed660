package states_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/interop/oracle"
)

// A tree is a file testdata/trees/*.txt: a head in YAML, then files after lines "-- path --", below base/, dev/ and prod/. The head
// has
//
//	opts: {top_file_merging_strategy: same}   # options of the minion
//	calls:                                    # what to call; arguments as a list, a map at its end are keyword arguments
//	- state.show_top
//	- state.sls: [web, {test: true}]
//	differs: why                              # the sides must differ
//
// Without calls it is compiled and applied as a highstate. Files of which the first line is "@@" have "\n" removed at the end. In all of it,
// @DIR@ is the scratch directory.

type tree struct {
	name, differs string
	opts          map[string]any
	calls         []any
	files         map[string]string

	file, key string // where stock's answers are kept
}

// treeAnswers is where stock's answers to the trees are kept.
const treeAnswers = answers + "/trees"

func loadTrees(t *testing.T) []tree {
	t.Helper()
	paths, err := filepath.Glob("testdata/trees/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	var list []tree
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range strings.Split(string(b), "\n=====\n") {
			file := strings.TrimSuffix(filepath.Base(p), ".txt")
			tr := parseTree(t, fmt.Sprintf("%s/%d", file, i), text)
			tr.file, tr.key = file, oracle.Key(text)
			list = append(list, tr)
		}
	}
	return list
}

func parseTree(t *testing.T, name, text string) tree {
	t.Helper()
	head, files := oracle.ParseTree(t, name, text)
	tr := tree{name: name, files: files}
	if tr.opts, _ = head["opts"].(map[string]any); tr.opts == nil {
		tr.opts = map[string]any{}
	}
	tr.calls, _ = head["calls"].([]any)
	tr.differs, _ = head["differs"].(string)
	if s, ok := head["about"].(string); ok {
		tr.name += "/" + strings.ReplaceAll(s, " ", "_")
	}
	if tr.calls == nil {
		tr.calls = []any{"state.show_top", "state.show_highstate", "state.show_lowstate", "state.highstate"}
	}
	return tr
}

// inDir puts a directory for @DIR@ in the texts of a value.
func inDir(v any, dir string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "@DIR@", dir)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = inDir(x, dir)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = inDir(x, dir)
		}
		return out
	}
	return v
}

// callOf is a call of a tree's head.
func callOf(v any) (fun string, args []any, kwargs map[string]any) {
	m, ok := v.(map[string]any)
	if !ok {
		return pytext.Str(v), nil, nil
	}
	for k, x := range m {
		fun = k
		list, _ := x.([]any)
		if n := len(list); n > 0 {
			if kw, ok := list[n-1].(map[string]any); ok {
				list, kwargs = list[:n-1], kw
			}
		}
		args = list
	}
	return fun, args, kwargs
}

// plant puts the files of a tree in place of those of the last one.
func (m *minion) plant(t *testing.T, tr tree) {
	t.Helper()
	root := filepath.Join(m.scratch, "srv")
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	for _, env := range []string{"base", "dev", "prod"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, env), 0o755), os.RemoveAll(filepath.Join(m.scratch, "cache", "files"))); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range tr.files {
		oracle.Write(t, filepath.Join(root, path), strings.ReplaceAll(text, "@DIR@", m.scratch))
	}
}

// ourCall calls a function of our side on a tree.
func (m *minion) ourCall(t *testing.T, tr tree, call any) answer {
	t.Helper()
	m.plant(t, tr)
	fun, args, kwargs := callOf(call)
	a := m.ours(t, fun, args, kwargs, inDir(tr.opts, m.scratch).(map[string]any))
	a.Check = string(m.ownGrains(t))
	return a
}

// judge compares the answers of the two sides to the calls of a tree.
func (tr tree) judge(t *testing.T, theirs, ours map[string]answer) {
	t.Helper()
	different := false
	for i, call := range tr.calls {
		diff := cmp.Diff(theirs[strconv.Itoa(i)], ours[strconv.Itoa(i)])
		different = different || diff != ""
		if diff != "" && tr.differs == "" {
			t.Errorf("%v: stock (-) and ours (+):\n%s", call, diff)
		}
	}
	if tr.differs != "" && !different {
		t.Errorf("no difference, though the tree says: %s", tr.differs)
	}
}

// runTrees compares ours with the kept answers to the trees.
func (p *replay) runTrees(t *testing.T) {
	t.Helper()
	book := oracle.OpenBook(t, treeAnswers)
	match := oracle.Chosen()
	names := oracle.ReplayNames(t, p.scratch)
	p.runner.Names = names
	file, grains := "", string(p.ownGrains(t))
	var tally oracle.Tally
	for _, tr := range loadTrees(t) {
		if tr.file != file { // of which stock had a process of its own
			file = tr.file
			oracle.Write(t, p.grainsFile(), grains)
		}
		book.Know(tr.file, tr.key)
		kept, ok := book.Find(tr.file, tr.key)
		if !match.MatchString("trees/"+tr.name) || !tally.Count(t, tr.name, kept, ok) {
			continue
		}
		passed := t.Run("trees/"+tr.name, func(t *testing.T) {
			t.Setenv("PATH", oracle.Programs(t, kept.Programs))
			p.runner.Give(t, kept)
			ours := map[string]answer{}
			for i, call := range tr.calls {
				ours[strconv.Itoa(i)] = p.ourCall(t, tr, call)
			}
			tr.judge(t, answersOf(oracle.Unpack(kept.Stock, names).(map[string]any)), ours)
		})
		if !passed {
			book.Suspect(tr.file, kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}
