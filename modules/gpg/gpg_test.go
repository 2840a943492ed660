package gpg

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`a\x3ab`: "a:b", `\x`: `\x`, `\xzz`: `\xzz`, `a\nb`: "a\nb", "": ""} {
		if got := unescape(in); got != want {
			t.Errorf("unescape(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	const fpr = "309D2C894DEEE8425AD4D489DEA388F50EB5CD8E"
	v := verdictOf(&answer{status: []status{
		{"NEWSIG", ""}, {"SIG_ID", "a 2026-01-01 1"}, {"GOODSIG", "DEA388F50EB5CD8E Ada <ada@example.com>"},
		{"VALIDSIG", fpr + " 2026-01-01 1 0 4 0 1 10 00 " + fpr}, {"TRUST_FULLY", "0 pgp"},
		// A bad signature behind a good one must not change what is known of the good one.
		{"NEWSIG", ""}, {"BADSIG", "99CB5859FD1F1C81 Bob"}, {"ERRSIG", ""},
	}}, false)
	if len(v.signatures) != 1 {
		t.Fatalf("%d signatures", len(v.signatures))
	}
	got, err := v.signatures[0].show()
	want := map[string]any{"username": "Ada <ada@example.com>", "key_id": "DEA388F50EB5CD8E", "fingerprint": fpr, "trust_level": "Fully", "status": "signature valid"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if v := verdictOf(&answer{status: []status{{"BEGIN_DECRYPTION", ""}, {"DECRYPTION_FAILED", ""}, {"FAILURE", "decrypt 4294967295"}, {"NODATA", "1"}}}, true); v.ok || v.status != "decryption failed" {
		t.Errorf("status %q", v.status)
	}
	for in, want := range map[string]string{"sign 11": "sign: incorrect passphrase", "sign 32849": "sign: file not found", "sign": "error - sign", "sign x": "error - sign x"} {
		if got := failure(in); got != want {
			t.Errorf("failure(%q) is %q, want %q", in, got, want)
		}
	}
	if _, err := (&signed{}).show(); err == nil || err.Error() != "KeyError: 'keyid'" {
		t.Errorf("error %v", err)
	}
}
