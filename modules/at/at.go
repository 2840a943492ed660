// Package at is Salt's execution module "at". Salt's source: salt/modules/at.py.
package at

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(e *modules.Env) (bool, string) {
	switch {
	case runtime.GOOS == "windows":
		return false, "The at module could not be loaded: unsupported platform"
	case e.Which("at") == "":
		return false, "The at module could not be loaded: at command not found"
	}
	return true, ""
}

// run runs one of the programs of at.
func run(ctx context.Context, c *modules.Call, program string, args ...any) (saltcmd.Result, error) {
	path := c.Which(program)
	if path == "" {
		return saltcmd.Result{}, &modules.MissingCommandError{Command: "None: command not found"}
	}
	return saltcmd.All(ctx, c, append([]any{path}, args...)...)
}

// bsd reports whether the numbers of jobs are texts.
func bsd(c *modules.Call) bool { return c.Grain("os") == "FreeBSD" || c.Grain("os") == "OpenBSD" }

func atq(ctx context.Context, c *modules.Call) (any, error) {
	jobs, err := list(ctx, c, c.Value("tag"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"jobs": jobs}, nil
}

// list returns the jobs with a tag or number, or all jobs.
func list(ctx context.Context, c *modules.Call, tag any) ([]any, error) {
	program, args := "atq", []any(nil)
	if c.Grain("os_family") == "RedHat" {
		program, args = "at", []any{"-l"}
	}
	r, err := run(ctx, c, program, args...)
	if err != nil {
		return nil, err
	}
	jobs := []any{}
	for _, line := range r.Lines() {
		job, err := parse(c, line)
		if err != nil {
			return nil, err
		}
		if job == nil {
			continue
		}
		script, err := run(ctx, c, "at", "-c", job["job"])
		if err != nil {
			return nil, err
		}
		job["tag"] = tagOf(script)
		if !bsd(c) {
			if job["job"], err = modules.ToInt(job["job"]); err != nil {
				return nil, err
			}
		}
		if !pytext.Truth(tag) || nested.Equal(tag, job["tag"]) || nested.Equal(tag, job["job"]) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// tagOf returns the job's tag, which follows Salt's mark in the script.
func tagOf(script saltcmd.Result) string {
	tag := ""
	for _, line := range script.Lines() {
		rest, ok := strings.CutPrefix(line, "### SALT: ")
		word := rest
		if i := strings.IndexFunc(word, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 128
		}); i >= 0 {
			word = word[:i]
		}
		if ok && word != "" {
			tag = word
		}
	}
	return tag
}

// parse reads a line of the list of jobs; nil for a header.
func parse(c *modules.Call, line string) (map[string]any, error) {
	f := strings.Fields(line)
	job, layout, words, queue, user := 0, time.ANSIC, [2]int{1, 6}, 6, 7
	switch {
	case c.Grain("os") == "OpenBSD":
		if strings.HasPrefix(line, " Rank") {
			return nil, nil
		}
		job, layout, words, queue, user = 6, "Jan _2, 2006 15:04", [2]int{1, 5}, 7, 5
	case c.Grain("os") == "FreeBSD":
		if strings.HasPrefix(line, "Date") {
			return nil, nil
		}
		job, layout, words, queue, user = 8, "Jan _2 15:04:05 MST 2006", [2]int{1, 6}, 7, 6
	}
	if len(f) <= max(job, queue, user) {
		return nil, modules.IndexError()
	}
	text := strings.Join(f[words[0]:words[1]], " ")
	t, err := time.Parse(strings.ReplaceAll(layout, "_2", "2"), text)
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "time data " + pytext.Repr(text) + " does not match format '%a %b %d %H:%M:%S %Y'"}
	}
	return map[string]any{
		"job": f[job], "date": t.Format("2006-01-02"), "time": t.Format("15:04") + ":00", "queue": f[queue], "user": f[user],
	}, nil
}

func atrm(ctx context.Context, c *modules.Call) (any, error) {
	if c.Which("at") == "" {
		return "'at.atrm' is not available.", nil
	}
	none := map[string]any{"jobs": map[string]any{"removed": []any{}, "tag": nil}}
	if len(c.Extra) == 0 {
		return none, nil
	}
	args := saltcmd.Words(c.Extra...)
	var tag any
	if args[0] == "all" && len(args) > 1 {
		tag = args[1]
	}
	jobs, err := list(ctx, c, tag)
	if err != nil {
		return nil, err
	}
	removed, numbers := []any{}, []string(nil)
	for _, j := range jobs {
		number := pytext.Str(j.(map[string]any)["job"])
		if args[0] == "all" || nested.Contains(nested.Anys(args), number) {
			removed, numbers = append(removed, number), append(numbers, number)
		}
	}
	// Stock passes the numbers as one word, which at(1) does not accept if there are several.
	cmd := []any{"-d"}
	for _, n := range numbers {
		cmd = append(cmd, n)
	}
	if len(numbers) == 0 {
		cmd = append(cmd, "")
	}
	if _, err := run(ctx, c, "at", cmd...); err != nil {
		return nil, err
	}
	return map[string]any{"jobs": map[string]any{"removed": removed, "tag": tag}}, nil
}

func at(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) < 2 {
		return map[string]any{"jobs": []any{}}, nil
	}
	path := c.Which("at")
	if path == "" {
		return "'at.at' is not available.", nil
	}
	for i, x := range c.Extra[1:] {
		if _, ok := x.(string); !ok {
			return nil, &modules.TypeError{Msg: fmt.Sprintf("sequence item %d: expected str instance, %s found", i, modules.TypeName(x))}
		}
	}
	script := strings.Join(saltcmd.Words(c.Extra[1:]...), " ") + "\n"
	if tag, ok := c.Keywords["tag"]; ok {
		script = "### SALT: " + pytext.Str(tag) + "\n" + script
	}
	cmd := saltcmd.Command{Args: saltcmd.Words(path, c.Extra[0]), Stdin: script, Merge: true}
	if user, ok := c.Keywords["runas"]; ok {
		cmd.RunAs = pytext.Str(user)
	}
	r, err := saltcmd.Run(ctx, c, cmd)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.Stdout, "Garbled time") {
		return map[string]any{"jobs": []any{}, "error": "invalid timespec"}, nil
	}
	out := r.Stdout
	for _, start := range [...]string{"warning: commands", "commands will be executed"} {
		if lines := pytext.SplitLines(out, false); strings.HasPrefix(out, start) {
			if len(lines) < 2 {
				return nil, modules.IndexError()
			}
			out = lines[1]
		}
	}
	f := strings.Fields(out)
	if len(f) < 2 {
		return nil, modules.IndexError()
	}
	var number any = f[1]
	if !bsd(c) {
		if number, err = modules.ToInt(f[1]); err != nil {
			return nil, err
		}
	}
	jobs, err := list(ctx, c, number)
	if err != nil {
		return nil, err
	}
	return map[string]any{"jobs": jobs}, nil
}

func atc(ctx context.Context, c *modules.Call) (any, error) {
	r, err := run(ctx, c, "at", "-c", c.Value("jobid"))
	if err != nil {
		return nil, err
	}
	if r.Stdout == "" {
		return map[string]any{"error": "invalid job id '" + pytext.Str(c.Value("jobid")) + "'"}, nil
	}
	return r.Stdout, nil
}

func jobcheck(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Keywords) == 0 {
		return map[string]any{"error": "You have given a condition"}, nil
	}
	all, err := list(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	jobs := []any{}
	for _, j := range all {
		ok, err := fits(c.Keywords, j.(map[string]any))
		if err != nil {
			return nil, err
		}
		if ok {
			jobs = append(jobs, j)
		}
	}
	out := map[string]any{"jobs": jobs}
	if len(all) > 0 && len(jobs) == 0 {
		out["note"] = "No match jobs or time format error"
	}
	return out, nil
}

// fits reports whether a job fits all conditions.
func fits(want, job map[string]any) (bool, error) {
	for key, field := range map[string]string{"runas": "user", "tag": "tag"} {
		if v := want[key]; pytext.Truth(v) && !nested.Equal(v, job[field]) {
			return false, nil
		}
	}
	hour, rest, _ := strings.Cut(job["time"].(string), ":")
	minute, _, _ := strings.Cut(rest, ":")
	date := strings.Split(job["date"].(string), "-")
	for _, p := range [...]struct{ name, have string }{{"hour", hour}, {"minute", minute}, {"day", date[2]}, {"month", date[1]}} {
		v := want[p.name]
		if !pytext.Truth(v) {
			continue
		}
		n, err := modules.ToInt(v)
		if err != nil {
			return false, err
		}
		if fmt.Sprintf("%02d", n) != p.have {
			return false, nil
		}
	}
	year := want["year"]
	if pytext.Truth(year) && len(pytext.Str(year)) == 2 {
		year = "20" + pytext.Str(year)
	}
	return !pytext.Truth(year) || nested.Equal(year, date[0]), nil
}
