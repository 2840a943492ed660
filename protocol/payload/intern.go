package payload

// intern returns the shared copy of a text that occurs in nearly every message, or nil. It does not allocate: a
// constant in an interface is part of the program's data.
func intern(b []byte) any {
	if len(b) == 0 {
		return ""
	}
	if len(b) > 15 {
		return nil
	}
	switch string(b) {
	case "enc":
		return "enc"
	case "load":
		return "load"
	case "sig":
		return "sig"
	case "sig_algo":
		return "sig_algo"
	case "enc_algo":
		return "enc_algo"
	case "version":
		return "version"
	case "aes":
		return "aes"
	case "clear":
		return "clear"
	case "head":
		return "head"
	case "body":
		return "body"
	case "mid":
		return "mid"
	case "cmd":
		return "cmd"
	case "_return":
		return "_return"
	case "id":
		return "id"
	case "jid":
		return "jid"
	case "fun":
		return "fun"
	case "fun_args":
		return "fun_args"
	case "arg":
		return "arg"
	case "tgt":
		return "tgt"
	case "tgt_type":
		return "tgt_type"
	case "glob":
		return "glob"
	case "ret":
		return "ret"
	case "return":
		return "return"
	case "retcode":
		return "retcode"
	case "success":
		return "success"
	case "user":
		return "user"
	case "root":
		return "root"
	case "out":
		return "out"
	case "nonce":
		return "nonce"
	case "ts":
		return "ts"
	case "tok":
		return "tok"
	case "data":
		return "data"
	case "tag":
		return "tag"
	case "_stamp":
		return "_stamp"
	case "serial":
		return "serial"
	case "test.ping":
		return "test.ping"
	case "name":
		return "name"
	case "result":
		return "result"
	case "comment":
		return "comment"
	case "changes":
		return "changes"
	case "duration":
		return "duration"
	case "start_time":
		return "start_time"
	case "__id__":
		return "__id__"
	case "__sls__":
		return "__sls__"
	case "__run_num__":
		return "__run_num__"
	}
	return nil
}
