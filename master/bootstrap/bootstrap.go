// Package bootstrap renders the data with which a new machine becomes a master's minion: as cloud-config with
// and without cloud-init's salt_minion module, as PowerShell, as JSON and as an environment file.
// master.EnsureMinion fills in the data. All YAML is written as JSON, which avoids quoting rules.
package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"
)

// Bootstrap is the data for one machine. It holds secrets: a token, or a private key.
type Bootstrap struct {
	ID string
	// Masters are the master addresses, in the order of attempts.
	Masters              []string
	RetPort, PublishPort int
	// Transport is Salt's name of the transport; empty means zeromq.
	Transport string
	// Fingerprint is the fingerprint of the master's key (master_finger), MasterKey the key itself.
	Fingerprint, MasterKey string
	// Token is sent as a MAC with the first sign-in. Only brine's minion supports it.
	Token string
	// PrivateKey and PublicKey are the minion's keys, if the master created them.
	PrivateKey, PublicKey string
	Tenant                string
	Grains                map[string]any
	// Config holds additional options of the minion; they override those above.
	Config map[string]any
}

// Conf returns the minion's configuration.
func (b Bootstrap) Conf() map[string]any {
	c := map[string]any{"id": b.ID, "master": b.Masters, "cache_jobs": true}
	if len(b.Masters) == 1 {
		c["master"] = b.Masters[0]
	}
	set := func(key, value string) {
		if value != "" {
			c[key] = value
		}
	}
	set("transport", b.Transport)
	set("master_finger", b.Fingerprint)
	set("join_token", b.Token)
	if b.RetPort != 0 {
		c["master_port"] = b.RetPort
	}
	if b.PublishPort != 0 {
		c["publish_port"] = b.PublishPort
	}
	maps.Copy(c, b.Config)
	return c
}

// check returns an error if a minion could not start with the data, for example with the zero value that
// EnsureMinion returns with an error.
func (b Bootstrap) check() error {
	if b.ID == "" {
		return errors.New("cannot render bootstrap: it has no minion id")
	}
	return nil
}

func object(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot render bootstrap: %w", err)
	}
	return readable(out.Bytes()), nil
}

// readable escapes characters that JSON permits and YAML does not. They can only occur in strings.
func readable(text []byte) []byte {
	odd := func(r rune) bool {
		return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
	}
	if !bytes.ContainsFunc(text, odd) {
		return text
	}
	var out bytes.Buffer
	for _, r := range string(text) {
		if odd(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// CloudConfig returns user data for machines whose cloud-init installs salt-minion with its salt_minion module.
func (b Bootstrap) CloudConfig() ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	part := map[string]any{"conf": b.Conf()}
	if len(b.Grains) > 0 {
		part["grains"] = b.Grains
	}
	if b.PrivateKey != "" {
		part["public_key"], part["private_key"] = b.PublicKey, b.PrivateKey
	}
	return cloudConfig(map[string]any{"salt_minion": part})
}

func cloudConfig(v map[string]any) ([]byte, error) {
	text, err := object(v)
	return append([]byte("#cloud-config\n"), text...), err
}

// file is a file for the machine.
type file struct {
	name, mode string
	content    []byte
}

// tokenFile is the file of the join token in the configuration directory.
const tokenFile = "join_token"

// files returns the minion's files, with names relative to its configuration directory. If dir names that
// directory, the token is in a file of its own (option join_token_file), so that dumps of the configuration do
// not contain it.
func (b Bootstrap) files(dir string) ([]file, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	options := b.Conf()
	apart := dir != "" && b.Token != "" && options["join_token"] == b.Token
	if apart {
		delete(options, "join_token")
		options["join_token_file"] = dir + tokenFile
	}
	conf, err := object(options)
	if err != nil {
		return nil, err
	}
	out := []file{{"minion.d/99-bootstrap.conf", "0600", conf}}
	if apart {
		out = append(out, file{tokenFile, "0600", []byte(b.Token + "\n")})
	}
	if len(b.Grains) > 0 {
		grains, err := object(b.Grains)
		if err != nil {
			return nil, err
		}
		out = append(out, file{"grains", "0644", grains})
	}
	if b.PrivateKey != "" {
		out = append(out, file{"pki/minion/minion.pem", "0400", []byte(b.PrivateKey)}, file{"pki/minion/minion.pub", "0644", []byte(b.PublicKey)})
	}
	if b.MasterKey != "" {
		out = append(out, file{"pki/minion/minion_master.pub", "0644", []byte(strings.TrimRight(b.MasterKey, "\n") + "\n")})
	}
	return out, nil
}

// CloudConfigFiles returns user data for machines with salt-minion installed: cloud-init writes its files and
// restarts it.
func (b Bootstrap) CloudConfigFiles() ([]byte, error) {
	const dir = "/etc/salt/"
	files, err := b.files(dir)
	if err != nil {
		return nil, err
	}
	var list []any
	for _, f := range files {
		list = append(list, map[string]any{"path": dir + f.name, "permissions": f.mode, "owner": "root:root", "encoding": "b64",
			"content": base64.StdEncoding.EncodeToString(f.content)})
	}
	return cloudConfig(map[string]any{"write_files": list, "runcmd": []any{[]any{"systemctl", "enable", "salt-minion"}, []any{"systemctl", "restart", "salt-minion"}}})
}

// PowerShell returns user data for Windows machines with salt-minion installed (cloudbase-init).
func (b Bootstrap) PowerShell() ([]byte, error) {
	files, err := b.files("")
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString("#ps1_sysnative\r\n$ErrorActionPreference = 'Stop'\r\n$conf = Join-Path $env:ProgramData 'Salt Project\\Salt\\conf'\r\n")
	for _, f := range files {
		name := strings.ReplaceAll(f.name, "/", `\`)
		fmt.Fprintf(&out, "$file = Join-Path $conf '%s'\r\nNew-Item -ItemType Directory -Force -Path (Split-Path $file) | Out-Null\r\n", name)
		if f.mode != "0644" { // restrict access before the content is written
			out.WriteString("New-Item -ItemType File -Force -Path $file | Out-Null\r\n" +
				"icacls $file /inheritance:r /grant '*S-1-5-18:F' '*S-1-5-32-544:F' | Out-Null\r\nif ($LASTEXITCODE) { throw \"icacls: $LASTEXITCODE\" }\r\n")
		}
		fmt.Fprintf(&out, "[IO.File]::WriteAllBytes($file, [Convert]::FromBase64String('%s'))\r\n", base64.StdEncoding.EncodeToString(f.content))
	}
	out.WriteString("Set-Service -Name salt-minion -StartupType Automatic\r\nRestart-Service -Name salt-minion\r\n")
	return []byte(out.String()), nil
}

// JSON returns all data as one document, for other tools or a metadata service.
func (b Bootstrap) JSON() ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	doc := map[string]any{"v": 1, "id": b.ID, "master": b.Masters, "config": b.Conf()}
	for key, value := range map[string]string{"master_fingerprint": b.Fingerprint, "master_pubkey": b.MasterKey, "join_token": b.Token, "transport": b.Transport,
		"tenant": b.Tenant, "private_key": b.PrivateKey, "public_key": b.PublicKey} {
		if value != "" {
			doc[key] = value
		}
	}
	if len(b.Grains) > 0 {
		doc["grains"] = b.Grains
	}
	return object(doc)
}

// Env returns an environment file with lines NAME="value", as systemd and shells read it, for scripts that
// write the configuration themselves. Keys are in base64.
func (b Bootstrap) Env() ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, v := range [][2]string{{"SALT_MINION_ID", b.ID}, {"SALT_MASTER", strings.Join(b.Masters, ",")}, {"SALT_MASTER_PORT", port(b.RetPort)},
		{"SALT_PUBLISH_PORT", port(b.PublishPort)}, {"SALT_TRANSPORT", b.Transport}, {"SALT_MASTER_FINGER", b.Fingerprint}, {"SALT_JOIN_TOKEN", b.Token},
		{"SALT_MASTER_KEY", encoded(b.MasterKey)}, {"SALT_MINION_PEM", encoded(b.PrivateKey)}, {"SALT_MINION_PUB", encoded(b.PublicKey)}} {
		if v[1] == "" {
			continue
		}
		if strings.ContainsFunc(v[1], unicode.IsControl) {
			return nil, errors.New("cannot render bootstrap: " + v[0] + " has control characters")
		}
		fmt.Fprintf(&out, "%s=\"%s\"\n", v[0], strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(v[1]))
	}
	return out.Bytes(), nil
}

func port(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
