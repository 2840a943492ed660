package pyip

import "testing"

func TestNetwork(t *testing.T) {
	for _, c := range []struct {
		text         string
		strict       bool
		want, failed string
	}{
		{"10.0.0.0/8", true, "10.0.0.0/8", ""},
		{"10.1.2.3/255.255.0.0", false, "10.1.0.0/16", ""},
		{"10.1.2.3/0.0.0.255", false, "10.1.2.0/24", ""},
		{"10.1.2.3", true, "10.1.2.3/32", ""},
		{"::ffff:1.2.3.4", true, "::ffff:102:304/128", ""},
		{"fe80::1/64", false, "fe80::/64", ""},
		{"10.1.2.3/8", true, "", "10.1.2.3/8 has host bits set"},
		{"10.1.2.3/33", false, "", "'10.1.2.3/33' does not appear to be an IPv4 or IPv6 network"},
		{"x", false, "", "'x' does not appear to be an IPv4 or IPv6 network"},
		{"10.0.0.0/", false, "", "'10.0.0.0/' does not appear to be an IPv4 or IPv6 network"},
	} {
		p, err := Network(c.text, c.strict)
		switch {
		case err != nil && err.Error() != c.failed:
			t.Errorf("%s: %v", c.text, err)
		case err == nil && (c.failed != "" || NetworkText(p) != c.want):
			t.Errorf("%s: %s", c.text, NetworkText(p))
		}
	}
	p, _ := Network("192.168.1.0/25", true)
	if Netmask(p) != "255.255.255.128" || Broadcast(p) != "192.168.1.127" || Size(p) != int64(128) {
		t.Errorf("mask %s, broadcast %s, %v addresses", Netmask(p), Broadcast(p), Size(p))
	}
}

func TestAddr(t *testing.T) {
	for text, want := range map[string]bool{"10.1.1.1": true, "8.8.8.8": false, "fe80::1": true, "2600::1": false, "::ffff:8.8.8.8": true, "192.0.0.8": false} {
		a, err := Addr(text)
		if err != nil || IsPrivate(a) != want {
			t.Errorf("%s: %v, %v", text, !want, err)
		}
	}
	if _, err := Addr("x"); err == nil || err.Error() != "'x' does not appear to be an IPv4 or IPv6 address" {
		t.Error(err)
	}
	a, _ := Addr("1.2.3.4")
	b, _ := Addr("::1")
	if Reverse(a) != "4.3.2.1.in-addr.arpa" || len(Reverse(b)) != 72 {
		t.Error(Reverse(a), Reverse(b))
	}
}
