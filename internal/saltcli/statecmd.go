package saltcli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/output"
)

// StateViews holds the view of state results for --plan or --recap. The zero value has no view.
type StateViews struct {
	plan  *output.Plan
	recap *output.Recap
}

// StateFunction reports whether an execution function runs states and returns their results.
func StateFunction(fun string) bool {
	return slices.Contains([]string{"state.apply", "state.highstate", "state.sls", "state.sls_id", "state.single", "state.high", "state.low",
		"state.top", "state.template", "state.template_str"}, fun)
}

// HasStateEvents reports whether the function accepts the argument state_events in stock, too.
func HasStateEvents(fun string) bool {
	return slices.Contains([]string{"state.apply", "state.highstate", "state.sls", "state.sls_id"}, fun)
}

// StateCommand checks --plan and --recap for a function and its arguments. It returns the arguments to send. Neither
// may be combined with the flags in others.
func (p *Program) StateCommand(fun string, words []string, others ...string) ([]string, error) {
	v := p.Values
	for _, flag := range []string{"plan", "recap"} {
		if !v.Bool(flag) {
			continue
		}
		if !StateFunction(fun) {
			return nil, p.Usage(fmt.Sprintf("--%s is for functions that run states, such as state.apply, not for %s", flag, fun))
		}
		for _, other := range others {
			if x := fmt.Sprint(v.Get(other)); x != "" && x != "false" && x != "<nil>" {
				return nil, p.Usage(fmt.Sprintf("--%s and --%s are mutually exclusive", flag, other))
			}
		}
	}
	if v.Bool("plan") && v.Bool("recap") {
		return nil, p.Usage("--plan and --recap are mutually exclusive")
	}
	if v.Bool("plan") {
		words = append(slices.Clone(words), "test=True")
	}
	return words, nil
}

// StateViews returns the view that the command line requests. If --out sets another outputter, the results are
// printed by that, and --plan only sets the exit code.
func (p *Program) StateViews(pr *Printer) StateViews {
	var s StateViews
	switch o := pr.options(0); {
	case p.Values.Bool("plan"):
		s.plan = &output.Plan{Options: o}
	case p.Values.Bool("recap"):
		s.recap = &output.Recap{Options: o}
	}
	return s
}

// On reports whether there is a view.
func (s StateViews) On() bool { return s.plan != nil || s.recap != nil }

// Add adds a minion's result to the view. For a recap it also prints the failed states. taken is false if the caller
// must print the result itself, also because of --out.
func (s StateViews) Add(pr *Printer, host string, value any, own string, retcode int) (taken bool, err error) {
	failed := false
	switch {
	case s.plan != nil:
		s.plan.Add(host, value)
	case s.recap != nil:
		failed = s.recap.Add(host, value)
	default:
		return false, nil
	}
	if !pr.plain() {
		return false, nil
	}
	if failed {
		err = pr.print(map[string]any{host: value}, own, pr.options(retcode).FailedOnly())
	}
	return true, err
}

// Lost adds a minion that did not return. It returns false if the caller must report that itself.
func (s StateViews) Lost(pr *Printer, host string) (taken bool) {
	const why = "it did not return"
	switch {
	case s.plan != nil:
		s.plan.Lost(host, why)
	case s.recap != nil:
		s.recap.Lost(host, why)
	}
	return s.On() && pr.plain()
}

// End prints the view and returns the exit code. code is the program's exit code without a view.
func (s StateViews) End(w io.Writer, pr *Printer, code int) int {
	text := ""
	switch {
	case s.plan != nil:
		text, code = s.plan.Text(), s.plan.Code()
	case s.recap != nil:
		text = s.recap.Text()
	}
	if pr.plain() {
		fmt.Fprint(w, text)
	}
	return code
}

// StateMeter starts a meter that shows the running state, if the terminal, the function and the command line allow
// it. It returns nil otherwise.
func (p *Program) StateMeter(fun string) *Meter {
	if out := p.Values.String("output"); out != "" && out != "highstate" && out != "nested" || p.Values.Bool("no_progress") || p.Values.Bool("progress") ||
		!StateFunction(fun) || p.ErrWidth == nil {
		return nil
	}
	return p.StartMeter()
}

// StateText returns the meter's text for a running state.
func StateText(number, total int, fun, name string) string {
	return strings.Join(strings.Fields(fmt.Sprintf("state %d/%d %s %s", number, total, fun, name)), " ")
}
