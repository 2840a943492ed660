package peernet

import (
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Of(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("%s counts for %s, want %s", in, got, want)
		}
	}
	if got := Of(netip.Addr{}); got.IsValid() {
		t.Errorf("no address counts for %v", got)
	}
}
