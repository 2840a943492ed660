//go:build interop

package states_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/modules/state"
)

// TestStockTrees compiles and runs whole trees.
func TestStockTrees(t *testing.T) {
	var s *stock
	file := ""
	match := oracle.Chosen()
	for _, tr := range loadTrees(t) {
		if !match.MatchString("trees/" + tr.name) {
			continue
		}
		// One stock process a file: what state.sls leaves in its memory would change what top files do.
		if tr.file != file {
			if s != nil {
				s.book.Save(t)
			}
			file, s = tr.file, startStock(t)
			s.recorder.Servers = &testserver.Servers{T: t}
			s.book = oracle.OpenBook(t, treeAnswers)
			for _, other := range loadTrees(t) {
				s.book.Know(other.file, other.key)
			}
		}
		if s.book.Asks(tr.file, tr.key) {
			t.Run("trees/"+tr.name, func(t *testing.T) { s.compareTree(t, tr) })
		}
	}
	if s != nil {
		s.book.Save(t)
	}
}

func (s *stock) compareTree(t *testing.T, tr tree) {
	opts := inDir(tr.opts, s.Scratch).(map[string]any)
	theirs, ours := map[string]answer{}, map[string]answer{}
	s.recorder.Setup(t, "")
	for i, call := range tr.calls {
		fun, args, kwargs := callOf(call)
		s.plant(t, tr)
		before := s.ownGrains(t)
		a := s.theirs(t, fun, args, kwargs, opts)
		a.Check = string(s.ownGrains(t))
		oracle.Write(t, s.grainsFile(), string(before))
		theirs[strconv.Itoa(i)], ours[strconv.Itoa(i)] = a, s.ourCall(t, tr, call)
	}
	tr.judge(t, theirs, ours)
	kept := oracle.Kept{Key: tr.key, Case: tr.name}
	if s.recorder.Take(&kept, "") {
		kept.Stock = oracle.Pack(keptAnswers(theirs), s.recorder.Names)
	}
	s.book.Keep(t, tr.file, kept)
}

// randomTree is high data of test states that depend on each other in all ways.
func randomTree(r *rand.Rand) map[string]any {
	n := 2 + r.IntN(7)
	forward := r.IntN(3) > 0
	high := map[string]any{}
	functions := []string{"nop", "succeed_with_changes", "succeed_without_changes", "fail_without_changes", "fail_with_changes", "configurable_test_state"}
	kinds := []string{"require", "require_any", "watch", "watch_any", "onchanges", "onchanges_any", "onfail", "onfail_any", "onfail_all", "prereq", "listen",
		"require_in", "watch_in", "onchanges_in", "onfail_in", "prereq_in", "listen_in", "use"}
	for i := range n {
		id := fmt.Sprintf("s%d", i)
		fun := functions[r.IntN(len(functions))]
		args := []any{fun, map[string]any{"order": int64(10000 + r.IntN(3*n))}}
		if fun == "configurable_test_state" {
			args = append(args, map[string]any{"changes": r.IntN(2) == 0}, map[string]any{"result": r.IntN(3) > 0})
		}
		if r.IntN(10) == 0 {
			args = append(args, map[string]any{"failhard": true})
		}
		if r.IntN(8) == 0 {
			args = append(args, map[string]any{"onlyif": []string{"true", "false"}[r.IntN(2)]})
		}
		used := map[string]bool{}
		for range r.IntN(4) {
			kind := kinds[r.IntN(len(kinds))]
			if r.IntN(2) == 0 {
				kind = kinds[r.IntN(6)]
			}
			if used[kind] {
				continue
			}
			used[kind] = true
			var reqs []any
			for range 1 + r.IntN(2) {
				other := fmt.Sprintf("s%d", r.IntN(n))
				if forward && i > 0 {
					other = fmt.Sprintf("s%d", r.IntN(i)) // so that there are few circles
				}
				if other != id || r.IntN(20) == 0 {
					reqs = append(reqs, map[string]any{"test": other})
				}
			}
			if reqs != nil {
				args = append(args, map[string]any{kind: reqs})
			}
		}
		high[id] = map[string]any{"test": args, "__sls__": "random", "__env__": "base"}
	}
	return high
}

// TestStockRandom runs random states: which ran, in which order and to what end must be the same.
func TestStockRandom(t *testing.T) {
	s := startStock(t)
	const trees = 150
	crashes := 0
	for seed := range uint64(trees) {
		high := randomTree(rand.New(rand.NewPCG(seed, 7)))
		kwargs := map[string]any{"test": seed%5 == 0}
		theirs := s.theirs(t, "state.high", []any{high}, kwargs, nil)
		ours := s.ours(t, "state.high", []any{high}, kwargs, nil)
		if theirs.Error == "UnboundLocalError" || theirs.Error == "AttributeError" {
			// Stock crashes in two cases: a single onfail_all that is not met, and failhard in the last state. Ours
			// must continue.
			if crashes++; ours.Error != "" {
				t.Errorf("tree %d: %v", seed, ours)
			}
			continue
		}
		if m, ok := theirs.Value.(map[string]any); ok {
			delete(m, "__FAILHARD__") // Salt's own note, which it forgets in its answer
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			text, _ := yaml.Marshal(high)
			t.Errorf("tree %d: stock (-) and ours (+):\n%s\n%s", seed, diff, text)
		}
	}
	if crashes > trees/10 {
		t.Errorf("stock crashed in %d of %d trees", crashes, trees)
	}
}

// TestStockStateModule compares the declarations of the execution module state.
func TestStockStateModule(t *testing.T) {
	s := startStock(t)
	theirs := s.theirs(t, "sys.argspec", []any{"state"}, nil, nil).Value.(map[string]any)
	text, err := os.ReadFile("../modules/state/defs.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range state.Module.Funcs {
		fun := "state." + d.Name
		if diff := cmp.Diff(theirs[fun], oracle.Plain(d.Argspec())); diff != "" {
			t.Errorf("%s: stock (-) and ours (+):\n%s", fun, diff)
		}
		delete(theirs, fun)
	}
	for fun := range theirs {
		if !strings.Contains(string(text), "// "+fun+" is absent: ") {
			t.Errorf("%s is neither there nor called absent", fun)
		}
	}
}
