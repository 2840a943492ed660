package minion

import (
	"context"
	"errors"
)

// Fire sends an event to every connected master. Listeners find data under "data"; values beyond the option
// max_event_size are cut. It returns [ErrNotConnected] if no master is connected. It is for programs that embed
// a minion; execution functions use [modules.Master].
func (m *Minion) Fire(ctx context.Context, tag string, data any) error {
	sent := false
	var errs []error
	for _, l := range m.eachLink() {
		if l.session() == nil {
			continue
		}
		err := masterDoor{l}.Fire(ctx, tag, data)
		errs = append(errs, err)
		sent = sent || err == nil
	}
	if !sent && len(errs) == 0 {
		return ErrNotConnected
	}
	return errors.Join(errs...)
}
