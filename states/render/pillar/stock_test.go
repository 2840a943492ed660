//go:build interop

package pillar_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render"
	"github.com/brine-salt/brine/states/render/pillar"
)

var only = flag.String("stock", "", "run only the trees whose name matches this regular expression")

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
	name  string
	head  map[string]any
	files map[string]string
}

func trees(t *testing.T) []tree {
	t.Helper()
	b, err := os.ReadFile("testdata/trees.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []tree
	for text := range strings.SplitSeq(string(b), "\n=====\n") {
		tr := tree{files: map[string]string{}}
		var head strings.Builder
		file := ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --\n") {
				file = strings.TrimSuffix(strings.TrimPrefix(line, "-- "), " --\n")
				tr.files[file] = ""
			} else if file != "" {
				tr.files[file] += line
			} else {
				head.WriteString(line)
			}
		}
		v, err := yaml.Parse([]byte(head.String()), "trees.txt")
		if err != nil {
			t.Fatalf("%v in %s", err, head.String())
		}
		tr.head = v.(map[string]any)
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

// TestStockTrees compiles every tree with stock Salt and with ours: the same data in the same order, and the same errors.
func TestStockTrees(t *testing.T) {
	scratch := t.TempDir()
	cmd := exec.Command(testsalt.Python(t), "-B", "testdata/stock.py", scratch)
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	logFile, err1 := os.Create(filepath.Join(scratch, "oracle.log"))
	cmd.Stderr = logFile
	in, err2 := cmd.StdinPipe()
	out, err3 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		logFile.Close()
	})
	web := httptest.NewServer(http.HandlerFunc(answerHTTP))
	t.Cleanup(web.Close)
	lines := bufio.NewReaderSize(out, 1<<20)
	which := regexp.MustCompile(*only)
	equal, excused := 0, 0
	for _, tr := range trees(t) {
		if !which.MatchString(tr.name) {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			for _, q := range tr.questions(t, web.URL) {
				theirs := ask(t, in, lines, q)
				ours := compile(t, q)
				why, _ := tr.head["differs"].(string)
				if _, ok := tr.head["error"]; ok && ours.Error != "" && theirs.Error != "" {
					ours.Error = theirs.Error
				}
				diff := cmp.Diff(theirs, ours)
				switch {
				case why == "" && diff != "":
					t.Errorf("pillarenv %v: -stock +ours\n%s", q.Pillarenv, diff)
				case why != "" && diff == "":
					t.Errorf("equal, but excused: %s", why)
				case why != "":
					excused++
				default:
					equal++
				}
			}
		})
	}
	t.Logf("%d pillars equal, %d excused", equal, excused)
}

// answerHTTP says what was asked for, in the form that the path begins with.
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

func (tr tree) questions(t *testing.T, web string) []question {
	t.Helper()
	dir := t.TempDir()
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
	if tr.head["keys"] == true {
		keys(t, filepath.Join(dir, "keys"))
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

// keys makes a directory of GnuPG's.
func keys(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", dir, "--kill", "all").Run() })
	if out, err := exec.Command("gpg", "--homedir", dir, "--batch", "--import", "testdata/key.asc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// numbers makes integers of JSON's numbers.
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

func ask(t *testing.T, in io.Writer, out *bufio.Reader, q question) answer {
	t.Helper()
	b, err := json.Marshal(q)
	if err == nil {
		_, err = in.Write(append(b, '\n'))
	}
	var line []byte
	if err == nil {
		line, err = out.ReadBytes('\n')
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		t.Fatalf("stock Salt answered %q: %v", line, err)
	}
	return a
}

func compile(t *testing.T, q question) answer {
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
		Env: modules.Env{Templates: render.Render, Runner: &runcmd.Runner{}}})
	d, err := c.Compile(t.Context(), pillar.Request{ID: q.ID, Grains: q.Grains, Saltenv: text(q.Saltenv), Pillarenv: text(q.Pillarenv),
		Override: pyobj.FromMap(q.Override)})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Pillar: pyobj.Repr(unordered(d))}
}

// unordered makes dicts of OrderedDicts, which Python shows otherwise.
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
