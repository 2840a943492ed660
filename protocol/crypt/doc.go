// Package crypt is the cryptography of Salt's wire protocol: RSA keys and their files, the three RSA operations
// that Salt uses, and the AES container that Salt calls Crypticle.
//
// The RSA operations are (salt/crypt.py, salt/utils/rsax931.py):
//
//   - encryption with OAEP and signatures with PKCS#1 v1.5, by names such as [OAEPSHA1] and
//     [PKCS1v15SHA1]. The lists are closed; any other name is [ErrAlgorithm].
//   - the private-key operation with ANSI X9.31 padding and no hash, from whose result anyone with
//     the public key can recover the message. Salt proves possession of a key with it.
//
// Keys that are too weak are refused when they are parsed (CVE-2013-2228). Secrets are compared in constant time,
// and the types that hold them hide them from fmt and slog. Files are opened only by functions named Load. The
// package keeps no state.
package crypt
