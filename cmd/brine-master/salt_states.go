package main

import (
	"fmt"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
)

// showProgress makes the meter show the states of a job. The events of stock minions do not contain the function of a
// state.
func (s *saltCmd) showProgress(o *client.RunOptions) {
	if s.meter == nil {
		return
	}
	s.meter.Set("waiting for minions")
	o.OnState = func(st client.StateDone) {
		text := saltcli.StateText(st.Number, st.Total, st.Fun, st.Name)
		if st.Targeted != 1 {
			text = fmt.Sprintf("%s: %s, %d of %d minions have ended", st.ID, text, st.Ended,
				st.Targeted)
		}
		s.meter.Set(text)
	}
}

// endViews prints the view of --plan or --recap and returns its exit code as an error.
func (s *saltCmd) endViews(sum *summary) error {
	code := 0
	if sum.failed {
		code = saltcli.ExitGeneric
	}
	code = s.views.End(s.Out, s.print, code)
	switch code {
	case 0:
		return nil
	case saltcli.ExitGeneric:
		return &saltcli.ExitError{Code: code,
			Text: "ERROR: Minions returned with non-zero exit code\n"}
	}
	return &saltcli.ExitError{Code: code}
}
