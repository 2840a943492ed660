package trove

import "context"

// noSuchThread is ER_NO_SUCH_THREAD.
const noSuchThread = 1094

// kill ends the statement of a cancelled call. While it waits for a lock, the server does not notice that the client
// has disconnected, and would execute the statement later.
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
	other.id = "" // a late KILL is not killed itself
	if _, err := other.query(ctx, "KILL "+id); err != nil && !isCode(err, noSuchThread) {
		return err
	}
	return nil
}
