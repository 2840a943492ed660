package pgpassword

import "testing"

func TestRoundTrip(t *testing.T) {
	for _, method := range []any{true, "md5", "scram-sha-256", false} {
		for _, password := range []string{"secret", "pässwörd", "it's"} {
			kept, err := Encrypt("ada", password, method)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Encrypt("ada", kept, method)
			if err != nil || again != kept {
				t.Errorf("%v: %q became %q, %v", method, kept, again, err)
			}
			if !Verify("ada", password, kept, method) || !Verify("ada", kept, kept, method) || Verify("ada", password+"x", kept, method) {
				t.Errorf("%v: %q is not verified rightly", method, kept)
			}
		}
	}
	if _, err := Encrypt("ada", "x", "rot13"); err == nil || err.Error() != "Unknown password algorithm: rot13" {
		t.Error(err)
	}
	if Verify("ada", "x", "SCRAM-SHA-256$999999999999:QUJD$x:y", "scram-sha-256") {
		t.Error("a verifier without sense is accepted")
	}
}

// The expected texts come from stock Salt.
func TestKnown(t *testing.T) {
	if got := hashMD5("ada", "secret"); got != "md52953f29bc314bd0a7ea7ddf6ccc1555f" {
		t.Error(got)
	}
	got, err := hashSCRAM("päss\u00a0\ufb01", []byte("0123456789abcdef"), 4096)
	if err != nil || got != "SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$0S4ApkYVFJ1sseiRZaVW3iG37W9KNatTiedPrVDc/Zs=:GtFEUXvxyh+YLOL1pwWrYVVk+oGwUWHXFfo4YvTTk+E=" {
		t.Error(got, err)
	}
}
