//go:build interop

package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
)

type question struct {
	Root    string   `json:"root"`
	Scratch string   `json:"scratch"`
	SLS     []string `json:"sls"`
	Test    bool     `json:"test"`
}

type outcome struct {
	Result  any    `json:"result"`
	Comment string `json:"comment"`
}

type applied struct {
	States map[string]outcome `json:"states"`
	Errors []string           `json:"errors"`
}

// TestVerdictsBesideStock: each tree is checked with the grains of this host, and applied by stock and by brine.
// Trees that change more than a scratch directory are applied with test=True. A tree with the verdict "fine" has the
// same results on both sides. A tree with another verdict has different results, or fails on both sides; if it works,
// the verdict was a false alarm. In continuous integration each run tests a part of the trees.
func TestVerdictsBesideStock(t *testing.T) {
	program := filepath.Join(t.TempDir(), "salt-call")
	if err := gobuild.Build("", program, "../../cmd/brine-minion"); err != nil {
		t.Fatal(err)
	}
	trees := loadTrees(t)
	all := len(trees)
	trees = slices.DeleteFunc(trees, func(tr *tree) bool { return !testsalt.InShare(t, "trees/"+tr.name) })
	var questions []question
	for _, tr := range trees {
		q := question{Root: t.TempDir(), Scratch: filepath.Join(t.TempDir(), "scratch"), Test: !tr.apply}
		tr.plant(t, q.Root, q.Scratch)
		for _, f := range tr.archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".sls"); ok {
				q.SLS = append(q.SLS, strings.ReplaceAll(strings.TrimSuffix(name, "/init"), "/", "."))
			}
		}
		slices.Sort(q.SLS)
		questions = append(questions, q)
	}
	var stock []applied
	testsalt.Ask(t, questions, &stock, "testdata/stock.py")
	fine, alarms := 0, 0
	for i, tr := range trees {
		t.Run(tr.name, func(t *testing.T) {
			report, failed := ourVerdict(t, program, questions[i])
			ours := ourAnswer(t, program, questions[i])
			differences := compare(stock[i], ours)
			switch {
			case !failed:
				fine++
				if differences != nil {
					t.Errorf("fine, but:\n%s\n%s", strings.Join(differences, "\n"), report)
				}
			case differences == nil && works(ours):
				alarms++
				t.Errorf("a false alarm:\n%s", report)
			}
		})
	}
	t.Logf("%d of %d trees, %d of them fine, %d false alarms", len(trees), all, fine, alarms)
	if len(trees) == all && fine < 35 || fine == 0 || alarms != 0 {
		t.Errorf("%d of %d trees are fine, %d false alarms", fine, len(trees), alarms)
	}
}

// ourVerdict returns the report of our program for a tree, on this host.
func ourVerdict(t *testing.T, program string, q question) (report string, failed bool) {
	t.Helper()
	out, err := exec.Command(program, "-c", t.TempDir(), "--local", "brine.check", q.Root).Output()
	if _, bad := err.(*exec.ExitError); err != nil && !bad {
		t.Fatal(err)
	}
	return string(out), err != nil
}

func ourAnswer(t *testing.T, program string, q question) applied {
	t.Helper()
	if err := os.RemoveAll(q.Scratch); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(q.Scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	conf, err := json.Marshal(map[string]any{"id": "host", "root_dir": base, "file_client": "local", "file_roots": map[string]any{"base": []string{q.Root}},
		"pillar_roots": map[string]any{"base": []string{base + "/none"}}, "log_level": "quiet", "features": map[string]any{"x509_v2": true}})
	if err == nil {
		err = os.WriteFile(filepath.Join(base, "minion"), conf, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", base, "--local", "--out=json", "state.apply", strings.Join(q.SLS, ","), fmt.Sprintf("test=%v", q.Test)}
	cmd := exec.Command(program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var answer struct {
		Local json.RawMessage `json:"local"`
	}
	if json.Unmarshal(out, &answer) != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	var a applied
	if json.Unmarshal(answer.Local, &a.States) != nil {
		a.States = nil
		if err := json.Unmarshal(answer.Local, &a.Errors); err != nil {
			t.Fatalf("%v: %s", err, answer.Local)
		}
	}
	return a
}

// compare lists the differences: states that only one side has, and other results. A state or function that stock
// lacks on this host, because a Python library is missing, is not compared.
func compare(stock, ours applied) []string {
	var list []string
	if (stock.Errors == nil) != (ours.Errors == nil) {
		return []string{fmt.Sprintf("stock: %.300q\nours: %.300q", stock.Errors, ours.Errors)}
	}
	tags := maps.Clone(stock.States)
	maps.Copy(tags, ours.States)
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		a, has := stock.States[tag]
		if strings.Contains(a.Comment, " was not found in SLS ") || strings.HasSuffix(a.Comment, " is not available") {
			continue
		}
		b, have := ours.States[tag]
		if !has || !have || a.Result != b.Result {
			list = append(list, fmt.Sprintf("%s: stock %v %v %.150q, ours %v %v %.150q", tag, has, a.Result, a.Comment, have, b.Result, b.Comment))
		}
	}
	return list
}

// works reports whether no state failed.
func works(a applied) bool {
	for _, s := range a.States {
		if s.Result == false {
			return false
		}
	}
	return a.Errors == nil
}
