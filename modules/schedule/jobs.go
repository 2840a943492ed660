package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func enableJob(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.Truth(c.Opt("test")) { // Salt looks at the minion's option here, not at the argument
		return map[string]any{"comment": "Job: " + c.Str("name") + " would be enabled in schedule.", "result": true, "changes": map[string]any{}}, nil
	}
	return switchJob(ctx, c, "enable", "Enabled", true)
}

func disableJob(ctx context.Context, c *modules.Call) (any, error) {
	if keyword(c, "test") {
		return map[string]any{"comment": "Job: " + c.Str("name") + " would be disabled in schedule.", "result": true, "changes": map[string]any{}}, nil
	}
	return switchJob(ctx, c, "disable", "Disabled", false)
}

func switchJob(ctx context.Context, c *modules.Call, verb, done string, on bool) (any, error) {
	name := c.Str("name")
	ret := map[string]any{"comment": []any{}, "result": true, "changes": map[string]any{}}
	where, err := whereIs(ctx, c, name)
	if err != nil {
		return nil, err
	}
	event := map[string]any{"name": name, "func": verb + "_job", "persist": persist(c)}
	switch where {
	case "":
		ret["comment"], ret["result"] = "Job "+name+" does not exist.", false
		return ret, nil
	case "pillar":
		event["where"], event["persist"] = "pillar", false
	}
	reply, ok := ask(ctx, c, event, verb+"d_job_complete")
	if !ok || !pytext.Truth(reply["complete"]) {
		return ret, nil
	}
	job, ok := jobIn(reply, name)
	if ok && pytext.Truth(job["enabled"]) == on {
		ret["comment"], ret["changes"] = done+" Job "+name+" in schedule.", map[string]any{name: verb + "d"}
	} else {
		ret["comment"], ret["result"] = "Failed to "+verb+" job "+name+" in schedule.", false
	}
	return ret, nil
}

func save(ctx context.Context, c *modules.Call) (any, error) {
	if keyword(c, "test") {
		return map[string]any{"comment": "Schedule would be saved.", "result": true}, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"func": "save_schedule"}, "saved")
	switch {
	case !ok:
		return map[string]any{"comment": []any{}, "result": true}, nil
	case pytext.Truth(reply["complete"]):
		return map[string]any{"comment": "Schedule (non-pillar items) saved.", "result": true}, nil
	}
	return failed("Failed to save schedule."), nil
}

func enable(ctx context.Context, c *modules.Call) (any, error) {
	return switchAll(ctx, c, "enable", "Enabled", true)
}

func disable(ctx context.Context, c *modules.Call) (any, error) {
	return switchAll(ctx, c, "disable", "Disabled", false)
}

func switchAll(ctx context.Context, c *modules.Call, verb, done string, on bool) (any, error) {
	ret := map[string]any{"comment": []any{}, "changes": map[string]any{}, "result": true}
	if keyword(c, "test") {
		ret["comment"] = "Schedule would be " + verb + "d."
		return ret, nil
	}
	reply, ok := ask(ctx, c, map[string]any{"func": verb, "persist": persist(c)}, verb+"d_complete")
	if !ok || !pytext.Truth(reply["complete"]) {
		return ret, nil
	}
	all, _ := reply["schedule"].(map[string]any)
	if v, ok := all["enabled"]; ok && pytext.Truth(v) == on {
		ret["comment"], ret["changes"] = done+" schedule on minion.", map[string]any{"schedule": verb + "d"}
	} else {
		ret["comment"], ret["result"] = "Failed to "+verb+" schedule on minion.", false
	}
	return ret, nil
}

func reload(ctx context.Context, c *modules.Call) (any, error) {
	comment, result := []any{}, true
	say := func(ok bool, good, bad string) {
		if ok {
			comment = append(comment, good)
			return
		}
		comment, result = append(comment, bad), false
	}
	if _, ok := c.PillarData()["schedule"]; ok {
		say(c.Agent != nil && c.Agent.FireLocal("pillar_refresh", map[string]any{}), "Reloaded schedule from pillar on minion.",
			"Failed to reload schedule from pillar on minion.")
	}
	data, err := readJobs(c, included(c, "schedule.conf"))
	switch {
	case err != nil:
		say(false, "", fmt.Sprintf("Unable to read existing schedule file: %s", err))
	case data == nil:
		if c.IsFile(included(c, "schedule.conf")) {
			say(false, "", "Failed to reload schedule on minion.  Saved file is empty or invalid.")
		}
	case !pytext.Truth(data["schedule"]):
		say(false, "", "Failed to reload schedule on minion.  Saved file is empty or invalid.")
	default:
		_, ok := ask(ctx, c, map[string]any{"func": "reload", "schedule": data}, "")
		say(ok, "Reloaded schedule on minion from schedule.conf.", "Failed to reload schedule on minion from schedule.conf.")
	}
	return map[string]any{"comment": comment, "result": result}, nil
}

func move(ctx context.Context, c *modules.Call) (any, error) {
	return hand(ctx, c, "moved", "Moved Job %s from schedule.", true)
}

func copyJob(ctx context.Context, c *modules.Call) (any, error) {
	return hand(ctx, c, "copied", "Copied Job %s from schedule to minion(s).", false)
}

// hand sends a job of the schedule to other minions, through the master. With away it also removes the job here.
func hand(ctx context.Context, c *modules.Call, done, comment string, away bool) (any, error) {
	name := c.Str("name")
	ret := map[string]any{"comment": []any{}, "result": true}
	if keyword(c, "test") {
		ret["comment"] = "Job: " + name + " would be " + done + " from schedule."
		return ret, nil
	}
	var job map[string]any
	for _, where := range [...]string{"opts", "pillar"} {
		all, err := everything(ctx, c, where)
		if err != nil {
			return nil, err
		}
		if v, ok := all[name].(map[string]any); ok {
			job = v
			break
		}
	}
	if job == nil {
		return failed("Job " + name + " does not exist."), nil
	}
	args := []any{}
	for _, k := range slices.Sorted(maps.Keys(job)) {
		args = append(args, k+"="+pytext.Str(job[k]))
	}
	v, err := c.Exec(ctx, "publish.publish", c.Value("target"), "schedule.add", args)
	if err != nil {
		return nil, err
	}
	answers, _ := v.(map[string]any)
	minions, errs := []any{}, []any{}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		minions = append(minions, id)
		if !pytext.Truth(answers[id]) {
			errs = append(errs, id)
		}
	}
	switch {
	case len(answers) == 0:
		ret["comment"] = "no servers answered the published schedule.add command"
		return ret, nil
	case len(errs) > 0:
		ret["comment"], ret["minions"] = "the following minions return False", errs
		return ret, nil
	}
	if away {
		if _, err := removeJob(ctx, c, name, false, false, true); err != nil {
			return nil, err
		}
	}
	ret["comment"], ret["minions"] = fmt.Sprintf(comment, name), minions
	return ret, nil
}

// format returns the keyword argument time_fmt, or its default.
func format(c *modules.Call) string {
	if f := c.Keywords["time_fmt"]; pytext.Truth(f) {
		return pytext.Str(f)
	}
	return "%Y-%m-%dT%H:%M:%S"
}

func isDate(v any, format string) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	_, err := pydate.Strptime(s, format)
	return err == nil
}

func postponeJob(ctx context.Context, c *modules.Call) (any, error) {
	switch {
	case !c.Bool("name"):
		return failed("Job name is required."), nil
	case !c.Bool("current_time"):
		return failed("Job current time is required."), nil
	case !isDate(c.Value("current_time"), format(c)):
		return failed("Date string could not be parsed."), nil
	case !c.Bool("new_time"):
		return failed("Job new_time is required."), nil
	case !isDate(c.Value("new_time"), format(c)):
		return failed("Date string could not be parsed."), nil
	}
	return putOff(ctx, c, map[string]any{"func": "postpone_job", "time": c.Value("current_time"), "new_time": c.Value("new_time")},
		"postponed", "Postponed Job %s in schedule.", "Failed to postpone job %s in schedule.")
}

func skipJob(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("current_time") && !isDate(c.Value("current_time"), format(c)) {
		return failed("Date string could not be parsed."), nil
	}
	if !c.Bool("current_time") {
		return failed("Job time is required."), nil
	}
	return putOff(ctx, c, map[string]any{"func": "skip_job", "time": c.Value("current_time")},
		"skipped", "Added Skip Job %s in schedule.", "Failed to skip job %s in schedule.")
}

func putOff(ctx context.Context, c *modules.Call, event map[string]any, would, good, bad string) (any, error) {
	name := c.Str("name")
	if pytext.Truth(c.Opt("test")) {
		return map[string]any{"comment": "Job: " + name + " would be " + would + " in schedule.", "result": true}, nil
	}
	where, err := whereIs(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if where == "" {
		return failed("Job " + name + " does not exist."), nil
	}
	event["name"], event["time_fmt"] = name, format(c)
	if where == "pillar" {
		event["where"] = "pillar"
	}
	reply, ok := ask(ctx, c, event, pytext.Str(event["func"])+"_complete")
	if !ok || !pytext.Truth(reply["complete"]) {
		return map[string]any{"comment": []any{}, "result": true}, nil
	}
	if job, ok := jobIn(reply, name); ok && pytext.Truth(job["enabled"]) {
		return map[string]any{"comment": fmt.Sprintf(good, name), "result": true}, nil
	}
	return failed(fmt.Sprintf(bad, name)), nil
}

func showNextFireTime(ctx context.Context, c *modules.Call) (any, error) {
	reply, ok := ask(ctx, c, map[string]any{"name": c.Str("name"), "func": "get_next_fire_time"}, "next_fire_time_complete")
	if !ok {
		return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'event_ret' where it is not associated with a value"}
	}
	ret := map[string]any{"result": true}
	if next, ok := reply["next_fire_time"]; ok {
		ret["next_fire_time"] = next
	} else {
		ret["comment"] = "next fire time not available."
	}
	if !c.Bool("name") {
		ret["result"] = false
		if _, ok := ret["comment"]; !ok {
			ret["comment"] = "Job name is required."
		}
	}
	return ret, nil
}

func jobStatus(ctx context.Context, c *modules.Call) (any, error) {
	reply, ok := ask(ctx, c, map[string]any{"func": "job_status", "name": c.Str("name"), "fire_event": true}, "job_status_complete")
	if !ok {
		return nil, nil
	}
	data, _ := reply["data"].(map[string]any)
	out := map[string]any{}
	for k, v := range data {
		out[k] = dateText(v, c.Str("time_fmt"))
	}
	return out, nil
}
