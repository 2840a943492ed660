package beacon

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pydate"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// certInfo is the beacon cert_info (salt/beacons/cert_info.py).
var certInfo = Kind{Name: "cert_info", Validate: func(_ *Host, config any) (bool, string) {
	c, bad := mustList("cert_info", config)
	if bad != "" {
		return false, bad
	}
	if _, ok := c["files"]; !ok {
		return false, "Configuration for cert_info beacon must contain files option."
	}
	return true, valid
}, Look: lookCertificates}

// notifyDays is the default number of days before its expiry at which a certificate is reported.
const notifyDays = 45

// lookCertificates reports the certificates that expire soon.
func lookCertificates(_ context.Context, h *Host, config []any) ([]map[string]any, error) {
	// The days may be set for all files and for single files.
	c := flat(config)
	everyDays, err := days(c["notify_days"], notifyDays)
	if err != nil {
		return nil, err
	}
	var certificates []any
	files, _ := c["files"].([]any)
	for _, x := range files {
		path, limit := pytext.Str(x), everyDays
		if m, ok := x.(map[string]any); ok {
			if len(m) == 0 {
				continue
			}
			path = sortedKeys(m)[0]
			settings, _ := m[path].(map[string]any)
			if limit, err = days(settings["notify_days"], everyDays); err != nil {
				return nil, err
			}
		}
		cert, err := readCertificate(h, path)
		// As in Salt, a file that cannot be read is logged in each run, and the others are still checked.
		if err != nil {
			h.Logger().Error(fmt.Sprintf("Unable to load certificate %s (%s)", path, err))
			continue
		}
		// As in Salt, the expiry time, which is in UTC, is compared with the local clock.
		left := int64(floorDays(cert.NotAfter.UTC().Sub(pydate.Now(h.Now()))))
		// A negative limit reports every certificate.
		if limit < 0 || left <= limit {
			certificates = append(certificates, describeCertificate(path, cert, h.Now()))
		}
	}
	if certificates == nil {
		return nil, nil
	}
	return []map[string]any{{"certificates": certificates}}, nil
}

// days returns a number of days, or def if it is not set.
func days(v any, def int64) (int64, error) {
	if v == nil {
		return def, nil
	}
	return modules.ToInt(v)
}

// floorDays rounds down, as Python's timedelta.days does; int() would round a negative duration up.
func floorDays(d time.Duration) int {
	n := int(d / (24 * time.Hour))
	if d < 0 && d%(24*time.Hour) != 0 {
		n--
	}
	return n
}

// maxCertificate limits a file with a certificate, in bytes.
const maxCertificate = 1 << 20

// readCertificate returns the first certificate of a PEM file.
func readCertificate(h *Host, path string) (*x509.Certificate, error) {
	f, err := os.Open(h.Path(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCertificate))
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, errors.New("it contains no certificate")
		}
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
}

// describeCertificate returns the data of an event, in the form of Python's OpenSSL.
func describeCertificate(path string, cert *x509.Certificate, now time.Time) map[string]any {
	const raw, shown = "20060102150405Z", "2006-01-02 15:04:05Z"
	// The names are read from the raw bytes, since x509 loses the order of their parts.
	issuer, issuerMap := distinguishedName(cert.RawIssuer)
	subject, subjectMap := distinguishedName(cert.RawSubject)
	// Python's integers have any size; a serial that does not fit 64 bits is sent as text.
	var serial any = cert.SerialNumber.String()
	if cert.SerialNumber.IsInt64() {
		serial = cert.SerialNumber.Int64()
	}
	extensions := []any{}
	for _, e := range cert.Extensions {
		extensions = append(extensions, map[string]any{"ext_name": oidName(e.Id), "ext_data": extensionText(cert, e)})
	}
	return map[string]any{"cert_path": path, "issuer": issuer, "issuer_dict": issuerMap, "subject": subject, "subject_dict": subjectMap,
		"notAfter_raw": cert.NotAfter.UTC().Format(raw), "notAfter": cert.NotAfter.UTC().Format(shown),
		"notBefore_raw": cert.NotBefore.UTC().Format(raw), "notBefore": cert.NotBefore.UTC().Format(shown), "serial_number": serial,
		// X.509 counts versions from 0, Go from 1.
		"signature_algorithm": signatureName(cert.SignatureAlgorithm), "version": int64(cert.Version - 1), "extensions": extensions,
		"has_expired": now.After(cert.NotAfter)}
}

// distinguishedName returns a name with OpenSSL's short attribute names.
func distinguishedName(der []byte) (string, map[string]any) {
	var rdn pkix.RDNSequence
	// A malformed name is shown as empty.
	if _, err := asn1.Unmarshal(der, &rdn); err != nil {
		return "", map[string]any{}
	}
	var parts []string
	m := map[string]any{}
	for _, set := range rdn {
		for _, a := range set {
			key, value := attributeName(a.Type), fmt.Sprint(a.Value)
			parts = append(parts, fmt.Sprintf(`%s="%s"`, key, value))
			m[key] = value
		}
	}
	return strings.Join(parts, ","), m
}

// attributeName returns OpenSSL's short name of an attribute.
func attributeName(oid asn1.ObjectIdentifier) string {
	switch oid.String() {
	case "2.5.4.3":
		return "CN"
	case "2.5.4.4":
		return "SN"
	case "2.5.4.5":
		return "serialNumber"
	case "2.5.4.6":
		return "C"
	case "2.5.4.7":
		return "L"
	case "2.5.4.8":
		return "ST"
	case "2.5.4.9":
		return "street"
	case "2.5.4.10":
		return "O"
	case "2.5.4.11":
		return "OU"
	case "2.5.4.12":
		return "title"
	case "2.5.4.17":
		return "postalCode"
	case "2.5.4.42":
		return "GN"
	case "1.2.840.113549.1.9.1":
		return "emailAddress"
	case "0.9.2342.19200300.100.1.25":
		return "DC"
	case "0.9.2342.19200300.100.1.1":
		return "UID"
	}
	return "UNDEF"
}

// oidName returns OpenSSL's name of an extension.
func oidName(oid asn1.ObjectIdentifier) string {
	switch oid.String() {
	case "2.5.29.14":
		return "subjectKeyIdentifier"
	case "2.5.29.15":
		return "keyUsage"
	case "2.5.29.17":
		return "subjectAltName"
	case "2.5.29.18":
		return "issuerAltName"
	case "2.5.29.19":
		return "basicConstraints"
	case "2.5.29.31":
		return "cRLDistributionPoints"
	case "2.5.29.32":
		return "certificatePolicies"
	case "2.5.29.35":
		return "authorityKeyIdentifier"
	case "2.5.29.37":
		return "extendedKeyUsage"
	case "1.3.6.1.5.5.7.1.1":
		return "authorityInfoAccess"
	case "1.3.6.1.4.1.11129.2.4.2":
		return "signedCertificateTimestampList"
	}
	return "Unknown OID"
}

// signatureName returns OpenSSL's name of an algorithm.
func signatureName(a x509.SignatureAlgorithm) string {
	switch a {
	case x509.SHA1WithRSA:
		return "sha1WithRSAEncryption"
	case x509.SHA256WithRSA:
		return "sha256WithRSAEncryption"
	case x509.SHA384WithRSA:
		return "sha384WithRSAEncryption"
	case x509.SHA512WithRSA:
		return "sha512WithRSAEncryption"
	case x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
		return "rsassaPss"
	case x509.ECDSAWithSHA1:
		return "ecdsa-with-SHA1"
	case x509.ECDSAWithSHA256:
		return "ecdsa-with-SHA256"
	case x509.ECDSAWithSHA384:
		return "ecdsa-with-SHA384"
	case x509.ECDSAWithSHA512:
		return "ecdsa-with-SHA512"
	case x509.PureEd25519:
		return "ED25519"
	}
	return a.String()
}

// extensionText returns the content of an extension as Salt shows it: common ones in the form of Python's
// cryptography, others as bytes.
func extensionText(cert *x509.Certificate, e pkix.Extension) string {
	switch e.Id.String() {
	// Basic constraints.
	case "2.5.29.19":
		text := "CA:FALSE"
		if cert.IsCA {
			text = "CA:TRUE"
		}
		if cert.MaxPathLen > 0 || cert.MaxPathLenZero {
			text += fmt.Sprintf(", pathlen:%d", cert.MaxPathLen)
		}
		return text
	case "2.5.29.17":
		// Go sorts the alternative names by type; OpenSSL keeps the order of the certificate.
		var names []string
		for _, n := range cert.DNSNames {
			names = append(names, "DNS:"+n)
		}
		for _, n := range cert.IPAddresses {
			names = append(names, "IP Address:"+n.String())
		}
		for _, n := range cert.EmailAddresses {
			names = append(names, "email:"+n)
		}
		for _, n := range cert.URIs {
			names = append(names, "URI:"+n.String())
		}
		return strings.Join(names, ", ")
	case "2.5.29.14":
		return "<SubjectKeyIdentifier(digest=" + pytext.Repr(cert.SubjectKeyId) + ")>"
	case "2.5.29.35":
		return "<AuthorityKeyIdentifier(key_identifier=" + pytext.Repr(cert.AuthorityKeyId) + ", authority_cert_issuer=None, authority_cert_serial_number=None)>"
	case "2.5.29.15":
		return keyUsage(cert.KeyUsage)
	case "2.5.29.37":
		return extendedUsage(cert)
	}
	return "<UnrecognizedExtension(oid=<ObjectIdentifier(oid=" + e.Id.String() + ", name=" + oidName(e.Id) + ")>, value=0x" + hex.EncodeToString(e.Value) + ")>"
}

// keyUsage returns the repr of Python's KeyUsage. encipher_only and decipher_only are meaningful only with
// key_agreement.
func keyUsage(u x509.KeyUsage) string {
	agreement := u&x509.KeyUsageKeyAgreement != 0
	var parts []string
	for _, x := range [...]struct {
		name string
		bit  x509.KeyUsage
	}{{"digital_signature", x509.KeyUsageDigitalSignature}, {"content_commitment", x509.KeyUsageContentCommitment},
		{"key_encipherment", x509.KeyUsageKeyEncipherment}, {"data_encipherment", x509.KeyUsageDataEncipherment},
		{"key_agreement", x509.KeyUsageKeyAgreement}, {"key_cert_sign", x509.KeyUsageCertSign}, {"crl_sign", x509.KeyUsageCRLSign},
		{"encipher_only", x509.KeyUsageEncipherOnly}, {"decipher_only", x509.KeyUsageDecipherOnly}} {
		on := u&x.bit != 0
		if !agreement && strings.HasSuffix(x.name, "_only") {
			on = false
		}
		parts = append(parts, x.name+"="+pytext.Repr(on))
	}
	return "<KeyUsage(" + strings.Join(parts, ", ") + ")>"
}

// extendedUsage returns the repr of Python's ExtendedKeyUsage.
func extendedUsage(cert *x509.Certificate) string {
	var parts []string
	// add appends one usage as Python shows it.
	add := func(oid, name string) { parts = append(parts, "<ObjectIdentifier(oid="+oid+", name="+name+")>") }
	for _, u := range cert.ExtKeyUsage {
		switch u {
		case x509.ExtKeyUsageServerAuth:
			add("1.3.6.1.5.5.7.3.1", "serverAuth")
		case x509.ExtKeyUsageClientAuth:
			add("1.3.6.1.5.5.7.3.2", "clientAuth")
		case x509.ExtKeyUsageCodeSigning:
			add("1.3.6.1.5.5.7.3.3", "codeSigning")
		case x509.ExtKeyUsageEmailProtection:
			add("1.3.6.1.5.5.7.3.4", "emailProtection")
		case x509.ExtKeyUsageTimeStamping:
			add("1.3.6.1.5.5.7.3.8", "timeStamping")
		case x509.ExtKeyUsageOCSPSigning:
			add("1.3.6.1.5.5.7.3.9", "OCSPSigning")
		case x509.ExtKeyUsageAny:
			add("2.5.29.37.0", "anyExtendedKeyUsage")
		}
	}
	// Usages that Go has no constant for.
	for _, oid := range cert.UnknownExtKeyUsage {
		add(oid.String(), oidName(oid))
	}
	return "<ExtendedKeyUsage([" + strings.Join(parts, ", ") + "])>"
}
