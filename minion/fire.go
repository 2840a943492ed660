package minion

import (
	"context"
	"errors"
)

// Fire sends an event to every master that the minion is connected to. The data is what listeners find under "data";
// what exceeds the option max_event_size is cut. It returns ErrNotConnected while there is no connection. It is for
// programs that run a minion; functions use [modules.Master].
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
