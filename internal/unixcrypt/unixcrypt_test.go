package unixcrypt

import (
	"strings"
	"testing"
)

// TestCrypt expects the hashes of libcrypt.
func TestCrypt(t *testing.T) {
	cases := []struct{ password, setting, want string }{
		{"Hello world!", "$6$saltstring", "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"},
		{"", "$6$saltstring", "$6$saltstring$kyGrqt6gmjAdtFLPrflEFifSYLCWWq1pyx95SvqinLDy2UHmj0sTF0MSLMwxPFZc3tu5kQckI8fks0zOPda3n1"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$6$saltstring", "$6$saltstring$eDwqP5AEMSZXKGM4R3GKMt4HzRGlR3TA2oYm2jwWo1X9tPao3hmOdGJJzv6mtIS2uyIojvzOC1HKF0tHVrjtY."},
		{"ü", "$6$saltstring", "$6$saltstring$8ilOps3bjJnqV/aYgMedVLZ7yjyFl6aUikpV1mTRujX8F3nATOonIedMSmWBz8VYyDTCGZv3L1A5SPtesYuYh."},
		{"Hello world!", "$6$rounds=1000$roundstoolow", "$6$rounds=1000$roundstoolow$VTiyBzzTJoDUzG2edg6tTfnH44buhC6xQa2y1SRnr1w/dVOBbXKE612uZFeIlMGZ8MgLiap2x5mD5IOra0fN00"},
		{"", "$6$rounds=1000$roundstoolow", "$6$rounds=1000$roundstoolow$FbGJa2cN7X1oOy/vdHJmVcHMYxGfw.yEPe9H9LlAjrQiAheUMPHJfBWBz1tsMg/YuC4ZZUe7GViu2bGZz2X961"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$6$rounds=1000$roundstoolow", "$6$rounds=1000$roundstoolow$eCIbVBW5z0TS9ZyfM4ZwQZXP0D6FzvLhHhbHC4YPRzUcUViuPzzA9NKwP2tjtMlUALShJrjJA49dS./iZc9I6."},
		{"ü", "$6$rounds=1000$roundstoolow", "$6$rounds=1000$roundstoolow$FDZxyhuxtmrQEWHrmO3pzxMEGGFrDz78XKmiGdSajLjYfMIqYYPFNmVhg3KsztWsPNgAFXNp2/NRBYXb7bBDf0"},
		{"Hello world!", "$6$toolongsaltstringxyz$junk", "$6$toolongsaltstrin$iGlL7EUUfzNQx59x3ydJZ.zXPMUu1dOynSEl/vcNhLlas77qD0DzRswhhB6LdrXTz250at0syAfUXra.XrxAI1"},
		{"", "$6$toolongsaltstringxyz$junk", "$6$toolongsaltstrin$mEk6h65w6YJghTxPobcTXEXio3kCcFxikGjKlfCGsts65XqUQQjutrYFb5zITX.AKQuKz9de1j8Bl0FT0KT5L/"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$6$toolongsaltstringxyz$junk", "$6$toolongsaltstrin$tW0FgoayjwUn.VB.RbhcaEvL7KEKr48uwjRs5uwGtz.7byCQrfpnwTycN37eC6zfGqq53Fx/tCxtSJWk7qmsu."},
		{"ü", "$6$toolongsaltstringxyz$junk", "$6$toolongsaltstrin$PPXWM2pf1h9YFLo.l122lHqUL5bd87bh3R/vtI.g/ufI08NhiCGd3LRjEoxl71I0vaF2V.F.4QkzBDwFNQubD."},
		{"Hello world!", "$5$saltstring", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		{"", "$5$saltstring", "$5$saltstring$FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$5$saltstring", "$5$saltstring$399fV7Vuudfew9GnnYETr414piBaT5gX8QEhvcTa.6A"},
		{"ü", "$5$saltstring", "$5$saltstring$rjUzSgJ1rSpBwtVGOj4/Au0slDLoMSq.Q87ueyhi2SC"},
		{"Hello world!", "$5$rounds=1400$anotherlongsaltstring", "$5$rounds=1400$anotherlongsalts$3qrvGONjJLD3nbbdMqiPU3HEkZj9mKxTAR68T172Rv9"},
		{"", "$5$rounds=1400$anotherlongsaltstring", "$5$rounds=1400$anotherlongsalts$7IcTVudmZDHdXM3GIn4KAxA5tvn.eciiARdqRBeqNs/"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$5$rounds=1400$anotherlongsaltstring", "$5$rounds=1400$anotherlongsalts$epZZlHtH1tHOZ8DnGj41SJcfP6bNgf3t.hurPudKyU6"},
		{"ü", "$5$rounds=1400$anotherlongsaltstring", "$5$rounds=1400$anotherlongsalts$xavi02Zlvn1zmNXkfIdnj00VFoLbu8/qIL8aEn8XJnD"},
		{"Hello world!", "$1$12345678", "$1$12345678$2PB9bKzcmmTSPe9wORyDk/"},
		{"", "$1$12345678", "$1$12345678$xek.CpjQUVgdf/P2N9KQf/"},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$1$12345678", "$1$12345678$K7NJRYEIP2JcofeXcL9un/"},
		{"ü", "$1$12345678", "$1$12345678$sf1JjwwXsPW81HACa9eWo0"},
		{"Hello world!", "$1$ab", "$1$ab$zRhLhQlF.oQpGoCIApPRg1"},
		{"", "$1$ab", "$1$ab$rn6aQS/o7141mj179E/zA."},
		{"a very much longer text to encrypt.  This one even stretches over more than one line.", "$1$ab", "$1$ab$90IUMNRpiivqoNublRo9z0"},
		{"ü", "$1$ab", "$1$ab$YdQOowxzaIxUcUJ5Egvg6/"},
	}
	for _, c := range cases {
		if got, err := Crypt(c.password, c.setting); err != nil || got != c.want {
			t.Errorf("%q with %q: %q, %v", c.password, c.setting, got, err)
		}
		if got, err := Crypt(c.password, c.want); err != nil || got != c.want {
			t.Errorf("a hash does not verify: %q with %q: %q, %v", c.password, c.want, got, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	cases := []struct{ password, setting string }{
		{"x", "$2b$10$abcdefghijklmnopqrstuv"}, {"x", "ab"}, {"x", ""}, {"x", "$6$a:b"}, {"x", "$6$a\nb"}, {"a\x00b", "$6$a"},
		{strings.Repeat("x", 600), "$6$a"}, {"x", "$6$rounds=99999999$a"}, {"x", "$6$rounds=x$a"},
	}
	for _, c := range cases {
		if got, err := Crypt(c.password, c.setting); err == nil {
			t.Errorf("%q with %q: %q", c.password, c.setting, got)
		}
	}
}

func TestSalt(t *testing.T) {
	a, b := Salt(16), Salt(16)
	if len(a) != 16 || a == b || strings.Trim(a, Alphabet) != "" {
		t.Errorf("salts %q and %q", a, b)
	}
}
