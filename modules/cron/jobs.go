package cron

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/cronjob"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func setJob(ctx context.Context, c *modules.Call) (any, error) {
	want := map[string]any{}
	for _, k := range times() {
		want[k] = strings.ToLower(pytext.Str(c.Value(k)))
	}
	return set(ctx, c, c.Value("user"), fill(c, want))
}

func setSpecial(ctx context.Context, c *modules.Call) (any, error) {
	return set(ctx, c, c.Value("user"), fill(c, map[string]any{"spec": c.Value("special")}))
}

func fill(c *modules.Call, want map[string]any) map[string]any {
	for _, k := range [...]string{"cmd", "commented", "comment", "identifier"} {
		want[k] = c.Value(k)
	}
	return want
}

// set implements cron.set_job and cron.set_special. It replaces an existing entry if something in it has to change.
func set(ctx context.Context, c *modules.Call, user any, want map[string]any) (any, error) {
	t, err := read(ctx, c, user)
	if err != nil {
		return nil, err
	}
	for _, have := range t.jobs() {
		if !cronjob.Matches(have, want["cmd"], want["identifier"]) {
			continue
		}
		if !stale(have, want) {
			return "present", nil
		}
		id := cronjob.ID(have)
		if _, special := have["spec"]; special {
			_, err = removeSpecial(ctx, c, user, want["cmd"], nil, id)
		} else {
			_, err = removeJob(ctx, c, user, want["cmd"], nil, id)
		}
		if err != nil {
			return nil, err
		}
		v, err := set(ctx, c, user, merge(have, want, id))
		if v == "new" {
			v = "updated"
		}
		return v, err
	}
	return add(ctx, c, user, t, want)
}

// stale reports whether an entry differs from the wanted one.
func stale(have, want map[string]any) bool {
	id := have["identifier"]
	if id == nil {
		id = cronjob.NoID
	}
	if cronjob.Changes(want["identifier"], id) {
		return true
	}
	for _, k := range append(times(), "spec", "comment", "commented", "cmd") {
		if cronjob.Changes(have[k], want[k]) {
			return true
		}
	}
	return false
}

// merge returns the wanted entry, with the old entry's values wherever they need no change.
func merge(have, want map[string]any, id string) map[string]any {
	out := map[string]any{}
	for k := range want {
		if out[k] = want[k]; k != "identifier" && !cronjob.Changes(have[k], want[k]) {
			out[k] = have[k]
		}
	}
	cid := any(id)
	if !cronjob.Changes(have["cmd"], want["cmd"]) && id == cronjob.NoID {
		if pytext.Truth(want["identifier"]) {
			cid = want["identifier"]
		}
		if cid == cronjob.NoID && have["identifier"] == nil {
			cid = nil
		}
	}
	if !pytext.Truth(cid) || !cronjob.Changes(cid, want["identifier"]) {
		out["identifier"] = cid
	}
	return out
}

func add(ctx context.Context, c *modules.Call, user any, t *table, want map[string]any) (any, error) {
	if _, special := want["spec"]; special {
		t.special = append(t.special, want)
	} else {
		when, err := dates(want)
		if err != nil {
			return nil, err
		}
		for k, v := range when {
			want[k] = v
		}
		t.crons = append(t.crons, want)
	}
	return t.put(ctx, c, user, "new")
}

// put writes the table and returns the verdict, or what crontab complains of.
func (t *table) put(ctx context.Context, c *modules.Call, user any, verdict string) (any, error) {
	complaint, ok, err := t.write(ctx, c, user)
	if err != nil {
		return nil, err
	}
	if !ok {
		return complaint, nil
	}
	return verdict, nil
}

// dates replaces random times by numbers.
func dates(want map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, r := range [...]struct {
		name     string
		from, to int64
	}{{"minute", 0, 59}, {"hour", 0, 23}, {"month", 1, 12}, {"dayweek", 0, 6}} {
		text := strings.ToLower(pytext.Str(want[r.name]))
		ends := strings.Split(text, ":")
		switch {
		case text == "random":
			out[r.name] = strconv.FormatInt(r.from+rand.Int64N(r.to-r.from+1), 10)
		case len(ends) == 2:
			slices.Sort(ends) // as texts, in Salt too
			from, err1 := modules.ToInt(ends[0])
			to, err2 := modules.ToInt(ends[1])
			switch {
			case err1 != nil:
				return nil, err1
			case err2 != nil:
				return nil, err2
			case from > to:
				return nil, &modules.PythonError{Type: "ValueError", Msg: fmt.Sprintf("empty range for randrange() (%d, %d, %d)", from, to+1, to+1-from)}
			}
			out[r.name] = strconv.FormatInt(from+rand.Int64N(to-from+1), 10)
		default:
			out[r.name] = text
		}
	}
	last := int64(28)
	switch out["month"] {
	case "1", "3", "5", "7", "8", "10", "12":
		last = 31
	case "4", "6", "9", "11":
		last = 30
	}
	out["daymonth"] = strings.ToLower(pytext.Str(want["daymonth"]))
	if out["daymonth"] == "random" {
		out["daymonth"] = strconv.FormatInt(1+rand.Int64N(last), 10)
	}
	return out, nil
}

func rmSpecial(ctx context.Context, c *modules.Call) (any, error) {
	return removeSpecial(ctx, c, c.Value("user"), c.Value("cmd"), c.Value("special"), c.Value("identifier"))
}

func removeSpecial(ctx context.Context, c *modules.Call, user, cmd, special, identifier any) (any, error) {
	t, err := read(ctx, c, user)
	if err != nil {
		return nil, err
	}
	verdict := "absent"
	for i, e := range t.special {
		if cronjob.Matches(e, cmd, identifier) && (special == nil || nested.Equal(e["spec"], special)) {
			t.special, verdict = slices.Delete(t.special, i, i+1), "removed"
			break
		}
	}
	return t.put(ctx, c, user, verdict) // Salt writes the table even if nothing was removed
}

func rmJob(ctx context.Context, c *modules.Call) (any, error) {
	when := map[string]any{}
	for _, k := range times() {
		if v := c.Value(k); v != nil {
			when[k] = v
		}
	}
	return removeJob(ctx, c, c.Value("user"), c.Value("cmd"), when, c.Value("identifier"))
}

func removeJob(ctx context.Context, c *modules.Call, user, cmd any, when map[string]any, identifier any) (any, error) {
	t, err := read(ctx, c, user)
	if err != nil {
		return nil, err
	}
	for i, e := range t.crons {
		if cronjob.Matches(e, cmd, identifier) && runsAt(e, when) {
			t.crons = slices.Delete(t.crons, i, i+1)
			return t.put(ctx, c, user, "removed")
		}
	}
	return "absent", nil
}

func runsAt(e, when map[string]any) bool {
	for k, v := range when {
		if text := pytext.Str(v); e[k] != text && !(strings.ToLower(text) == "random" && e[k] != "*") {
			return false
		}
	}
	return true
}

func setEnv(ctx context.Context, c *modules.Call) (any, error) {
	return setVariable(ctx, c, c.Value("user"), c.Value("name"), c.Value("value"))
}

func setVariable(ctx context.Context, c *modules.Call, user, name, value any) (any, error) {
	t, err := read(ctx, c, user)
	if err != nil {
		return nil, err
	}
	verdict := "new"
	for i, e := range t.env {
		if !nested.Equal(e["name"], name) {
			continue
		}
		if nested.Equal(e["value"], value) {
			return "present", nil
		}
		t.env, verdict = slices.Delete(t.env, i, i+1), "updated"
		break
	}
	t.env = append(t.env, map[string]any{"name": name, "value": value})
	return t.put(ctx, c, user, verdict)
}

func rmEnv(ctx context.Context, c *modules.Call) (any, error) {
	user := c.Value("user")
	t, err := read(ctx, c, user)
	if err != nil {
		return nil, err
	}
	verdict := "absent"
	for i, e := range slices.Backward(t.env) {
		if nested.Equal(e["name"], c.Value("name")) {
			t.env, verdict = slices.Delete(t.env, i, i+1), "removed"
			break
		}
	}
	return t.put(ctx, c, user, verdict)
}
