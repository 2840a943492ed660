package pillar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/pillar"
)

// answers is the file of stock's answers to the trees of testdata/trees.txt, one on each line. `make answers` asks
// stock again.
const answers = "testdata/stock/answers"

// tree is a case of testdata/trees.txt. Its head is YAML, with
//
//	about: what it shows        # the name
//	id, grains, saltenv, pillarenv, override   # what is asked; there are defaults
//	opts: {…}                   # options of the master
//	asks: [{pillarenv: dev}, …] # several questions, each over the above
//	keys: true                  # the keys in testdata/key.asc are those of @ROOT@/keys
//	error: why                  # both fail, and the texts are not compared, because of this
//	differs: why                # the sides must differ
//
// Then come files after lines "-- base/top.sls --", below the root of an environment. @ROOT@ in a text is the directory of all of them, @HTTP@ in a
// head the address of a server (answerHTTP).
type tree struct {
	name, key string
	head      map[string]any
	files     map[string]string
}

func trees(t *testing.T) []tree {
	t.Helper()
	b, err := os.ReadFile("testdata/trees.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []tree
	for text := range strings.SplitSeq(string(b), "\n=====\n") {
		tr := tree{key: oracle.Key(text)}
		tr.head, tr.files = oracle.ParseTree(t, "trees.txt", text)
		tr.name = tr.head["about"].(string)
		list = append(list, tr)
	}
	return list
}

type question struct {
	ID        string              `json:"id"`
	Grains    map[string]any      `json:"grains"`
	Saltenv   *string             `json:"saltenv"`
	Pillarenv *string             `json:"pillarenv"`
	Override  map[string]any      `json:"override"`
	Opts      map[string]any      `json:"opts"`
	Roots     map[string][]string `json:"roots"`
}

type answer struct{ Pillar, Error string }

// judge compares stock's answer to a question of the tree with ours.
func (tr tree) judge(t *testing.T, q question, theirs, ours answer) {
	t.Helper()
	why, _ := tr.head["differs"].(string)
	if _, ok := tr.head["error"]; ok && ours.Error != "" && theirs.Error != "" {
		ours.Error = theirs.Error
	}
	switch diff := cmp.Diff(theirs, ours); {
	case why == "" && diff != "":
		t.Errorf("pillarenv %v: -stock +ours\n%s", q.Pillarenv, diff)
	case why != "" && diff == "":
		t.Errorf("equal, but excused: %s", why)
	}
}

// TestReplay compiles every tree and compares the result with stock's recorded answer.
func TestReplay(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(answerHTTP))
	t.Cleanup(web.Close)
	book := oracle.OpenBook(t, answers)
	match := oracle.Chosen()
	var tally oracle.Tally
	for _, tr := range trees(t) {
		book.Know("trees", tr.key)
		kept, ok := book.Find("trees", tr.key)
		if !match.MatchString(tr.name) || !tally.Count(t, tr.name, kept, ok) {
			continue
		}
		passed := t.Run(tr.name, func(t *testing.T) {
			dir := t.TempDir()
			names := strings.NewReplacer("@ROOT@", dir, "@HTTP@", web.URL)
			runner := &oracle.Replayer{Real: &runcmd.Runner{}, Dir: dir, Names: names,
				Servers: &testserver.Servers{T: t, Replay: true}}
			t.Setenv("PATH", oracle.Programs(t, kept.Programs))
			runner.Give(t, kept)
			theirs := oracle.Unpack(kept.Stock, names).([]any)
			for i, q := range tr.questions(t, dir, web.URL) {
				m := theirs[i].(map[string]any)
				text := func(key string) string { s, _ := m[key].(string); return s }
				tr.judge(t, q, answer{Pillar: text("pillar"), Error: text("error")}, compile(t, q, runner))
			}
		})
		if !passed {
			book.Suspect("trees", kept)
		}
	}
	book.Save(t)
	tally.Report(t)
}

// answerHTTP answers with a description of the request, in the format with which the path begins.
func answerHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	said := fmt.Sprintf("%s %s %s:%s", r.URL.EscapedPath(), r.Header.Get("X-Asks"), user, password)
	switch kind, _, _ := strings.Cut(r.URL.Path[1:], "/"); kind {
	case "json":
		fmt.Fprintf(w, `{"asked": %q, "a": {"ext": [1, 2.5, null]}}`, said)
	case "yaml":
		fmt.Fprintf(w, "asked: %q\na: {ext: [1, 2.5, ~]}\n", said)
	case "list":
		fmt.Fprint(w, "[1]")
	default:
		http.Error(w, "no such thing", http.StatusNotFound)
	}
}

// questions writes the files of the tree to a directory, and returns the requests for it.
func (tr tree) questions(t *testing.T, dir, web string) []question {
	t.Helper()
	base := map[string]any{"id": "stock-minion", "roots": map[string]any{}, "grains": map[string]any{"os": "Debian", "role": "web",
		"deep": map[string]any{"er": "one"}, "id": "stock-minion"}}
	for _, env := range []string{"base", "dev", "prod"} {
		base["roots"].(map[string]any)[env] = []any{filepath.Join(dir, env)}
	}
	for name, text := range tr.files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(strings.ReplaceAll(text, "@ROOT@", dir)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	asks, _ := tr.head["asks"].([]any)
	if asks == nil {
		asks = []any{map[string]any{}}
	}
	var list []question
	for _, a := range asks {
		q := map[string]any{"opts": map[string]any{}, "override": map[string]any{}}
		for _, m := range []map[string]any{base, tr.head, a.(map[string]any)} {
			for k, v := range m {
				q[k] = v
			}
		}
		for _, k := range []string{"about", "asks", "keys", "differs", "error"} {
			delete(q, k)
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var one question
		dec := json.NewDecoder(strings.NewReader(strings.NewReplacer("@ROOT@", dir, "@HTTP@", web).Replace(string(b))))
		dec.DisallowUnknownFields()
		dec.UseNumber()
		if err := dec.Decode(&one); err != nil {
			t.Fatal(err)
		}
		one.Opts, _ = numbers(one.Opts).(map[string]any)
		one.Grains, _ = numbers(one.Grains).(map[string]any)
		one.Override, _ = numbers(one.Override).(map[string]any)
		list = append(list, one)
	}
	return list
}

// numbers converts JSON's numbers, which are all integers, to int64.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case map[string]any:
		for k, x := range v {
			v[k] = numbers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = numbers(x)
		}
	}
	return v
}

func compile(t *testing.T, q question, runner modules.Runner) answer {
	t.Helper()
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	opts := map[string]any{"renderer": "jinja|yaml", "state_top": "top.sls", "id": "the-master", "__role": "master", "ext_pillar": []any{}}
	for k, v := range q.Opts {
		opts[k] = v
	}
	c := pillar.New(pillar.Options{Opts: opts, Roots: q.Roots, Log: slog.New(slog.DiscardHandler),
		Env: modules.Env{Templates: render.Render, Runner: runner}})
	d, err := c.Compile(t.Context(), pillar.Request{ID: q.ID, Grains: q.Grains, Saltenv: text(q.Saltenv), Pillarenv: text(q.Pillarenv),
		Override: pyobj.FromMap(q.Override)})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Pillar: pyobj.Repr(unordered(d))}
}

// unordered converts OrderedDicts to dicts, because Python prints them differently.
func unordered(v any) any {
	switch v := v.(type) {
	case *pyobj.Dict:
		d := pyobj.NewDict()
		for k, x := range v.All() {
			_ = d.Set(k, unordered(x))
		}
		return d
	case *pyobj.List:
		l := pyobj.NewList()
		for _, x := range v.Items {
			l.Items = append(l.Items, unordered(x))
		}
		return l
	}
	return v
}
