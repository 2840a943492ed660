//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/transport/transporttest/certs"
)

// tlsOption returns the option ssl for one side: its certificate, and the authority of the other side's certificate.
func tlsOption(dir, who string) string {
	return fmt.Sprintf("ssl:\n  certfile: %s/%s.pem\n  keyfile: %s/%s.key\n  ca_certs: %s/ca.pem\n  cert_reqs: CERT_REQUIRED\n", dir, who, dir, who, dir)
}

// TestTLS checks the option ssl between stock and brine in both directions, over the transports that have it. Line
// 3007 is missing: up to 3007.15 at least, creating the context raises an error (salt/transport/base.py:
// ssl_context), so that no stock master or minion of this line has TLS.
func TestTLS(t *testing.T) {
	for _, pair := range []struct{ line, transport string }{
		{"3006", "tcp"}, {"3008", "tcp"}, {"3008", "ws"},
	} {
		t.Run(pair.line+"/"+pair.transport, func(t *testing.T) {
			t.Parallel()
			dir := certs.Make(t)
			t.Run("stock master", func(t *testing.T) {
				t.Parallel()
				extra := "auto_accept: True\n" + tlsOption(dir, "server")
				if pair.line == "3008" {
					// The routing between its processes does not work with TLS.
					extra += "worker_pools_enabled: False\n"
				}
				m := startStockMaster(t, pair.line, pair.transport, extra)
				start(t, ours("salt-minion"), "-c", m.minion(t, "ours", tlsOption(dir, "client")))
				m.bus.wait(0, "salt/minion/ours/start")
				if got := m.cmd("ours", "cp.get_file_str", "salt://hello.txt"); got != "hello from the file server\n" {
					t.Errorf("cp.get_file_str gave %v", got)
				}
			})
			t.Run("our master", func(t *testing.T) {
				t.Parallel()
				m := &ourMaster{site: newSite(t, pair.transport, "auto_accept: True\n"+tlsOption(dir, "server")), t: t, root: t, line: pair.line, id: "stock"}
				m.up()
				start(t, stock(t, pair.line, "salt-minion"), "-c", m.minion(t, m.id, tlsOption(dir, "client")))
				m.bus.wait(0, "salt/minion/stock/start")
				if got, _ := m.cmd("cp.get_file_str", "salt://hello.txt").(string); !strings.HasPrefix(got, "hello from") {
					t.Errorf("cp.get_file_str gave %v", got)
				}
			})
		})
	}
}
