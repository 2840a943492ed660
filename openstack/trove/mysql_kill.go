package trove

import "context"

// noSuchThread is ER_NO_SUCH_THREAD.
const noSuchThread = 1094

// kill ends the statement of a call that was cancelled. While it waits for a lock, the server does not see that its client has gone, and
// would carry it out later.
func (m *mysqlServer) kill(ctx context.Context) error {
	id := m.id
	m.close()
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	other := &mysqlServer{guest: m.guest}
	defer other.close()
	if err := other.connect(ctx); err != nil {
		return err
	}
	other.id = "" // a KILL that is late is not killed
	if _, err := other.query(ctx, "KILL "+id); err != nil && !isCode(err, noSuchThread) {
		return err
	}
	return nil
}
