package schedule

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vectors are the decisions of stock Salt, see testdata/generate.py.
type vectors struct {
	Scenes []struct {
		Name   string
		Jobs   map[string]any
		Pillar map[string]any
		Grains map[string]any
		Steps  []struct {
			Now     string
			Started [][]string
			State   map[string]any
		}
	}
	Crons []struct {
		Cron string
		Next []string
	}
}

func load(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/eval.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// whole converts JSON's numbers to the type that configuration has.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for k, x := range v {
			v[k] = whole(x)
		}
	case []any:
		for i, x := range v {
			v[i] = whole(x)
		}
	}
	return v
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999999", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// shown returns a job's state in the form of the vectors.
func shown(v any) any {
	switch v := v.(type) {
	case time.Time:
		text := v.Format("2006-01-02T15:04:05.000000")
		if v.Nanosecond() == 0 {
			text = v.Format("2006-01-02T15:04:05")
		}
		return map[string]any{"t": text}
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			m[k] = shown(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = shown(x)
		}
		return l
	}
	return v
}

func TestEvalAsStock(t *testing.T) {
	for _, scene := range load(t).Scenes {
		t.Run(scene.Name, func(t *testing.T) {
			pillar, _ := whole(scene.Pillar).(map[string]any)
			grains, _ := whole(scene.Grains).(map[string]any)
			s := New(Options{Jobs: whole(scene.Jobs).(map[string]any), Pillar: func() map[string]any { return pillar },
				Grains: func() map[string]any { return grains }})
			s.random = func(_, b int64) int64 { return b }
			last := map[string]any{}
			for _, step := range scene.Steps {
				if step.State == nil {
					step.State = last
				}
				last = step.State
				runs, _ := s.evaluate(instant(t, step.Now), time.Second)
				var started [][]string
				for _, r := range runs {
					started = append(started, []string{r.Name, r.Fun})
				}
				slices.SortFunc(started, slices.Compare)
				if diff := cmp.Diff(step.Started, started); diff != "" {
					t.Errorf("%s: started, stock (-) and ours (+):\n%s", step.Now, diff)
				}
				state := map[string]any{}
				for name, v := range s.merged() {
					if job, ok := v.(map[string]any); ok && !isSetting(name) {
						state[name] = shown(job)
					}
				}
				if diff := cmp.Diff(whole(step.State), any(state)); diff != "" {
					t.Errorf("%s: state, stock (-) and ours (+):\n%s", step.Now, diff)
				}
			}
		})
	}
}

func TestCronAsStock(t *testing.T) {
	for _, c := range load(t).Crons {
		at := time.Date(2026, 11, 21, 10, 7, 30, 0, time.UTC)
		var got []string
		expr, err := parseCron(c.Cron)
		for range c.Next {
			if err == nil {
				at, err = expr.nextTime(at)
			}
			if err != nil {
				got = append(got, "error")
				break
			}
			got = append(got, at.Format("2006-01-02T15:04:05"))
		}
		if diff := cmp.Diff(c.Next, got); diff != "" {
			t.Errorf("%q: stock (-) and ours (+):\n%s", c.Cron, diff)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"*/5 1-3 l * 5#2", "0 22-2 * * fri-mon", "0 0 1 1 * 0 2030", "@daily"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at := time.Date(2026, 11, 21, 10, 7, 30, 0, time.UTC)
		if c, err := parseCron(s); err == nil {
			if next, err := c.nextTime(at); err == nil && !next.After(at) {
				t.Errorf("%q: %v is not after %v", s, next, at)
			}
		}
	})
}
