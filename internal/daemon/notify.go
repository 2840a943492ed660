package daemon

import (
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// Notifier reports the daemon's state to its supervisor (systemd's sd_notify protocol). Without a supervisor it does
// nothing.
type Notifier struct {
	conn     net.Conn
	started  func() // see Started
	wrotePID atomic.Bool
}

func newNotifier(socket string) *Notifier {
	if socket == "" {
		return &Notifier{}
	}
	if socket[0] == '@' {
		socket = "\x00" + socket[1:]
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return &Notifier{}
	}
	return &Notifier{conn: conn}
}

func (n *Notifier) send(text string) {
	if n.conn != nil {
		_ = n.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = n.conn.Write([]byte(text))
	}
}

// Started is called by the work once it holds what only one process can hold: its lock, its ports. It writes the pid
// file and, in a background process, lets the process that started it exit with 0. Further calls do nothing.
func (n *Notifier) Started() { n.started() }

// Ready reports that the daemon is ready.
func (n *Notifier) Ready() { n.send("READY=1") }

// Status sets the line that systemctl status shows.
func (n *Notifier) Status(text string) { n.send("STATUS=" + text) }

// Close ends the connection to the supervisor.
func (n *Notifier) Close() {
	if n.conn != nil {
		n.conn.Close()
	}
}

// watch notifies the supervisor's watchdog at half of its interval. The channel is closed when watch has stopped.
func (n *Notifier) watch(usec string, done <-chan struct{}) <-chan struct{} {
	stopped := make(chan struct{})
	us, err := strconv.ParseInt(usec, 10, 64)
	if n.conn == nil || err != nil || us <= 0 {
		close(stopped)
		return stopped
	}
	go func() {
		defer close(stopped)
		t := time.NewTicker(time.Duration(us) * time.Microsecond / 2)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				n.send("WATCHDOG=1")
			}
		}
	}()
	return stopped
}
