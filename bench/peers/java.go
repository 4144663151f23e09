package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/hop"
)

// springIntegrationPeer is Spring Integration with its channel in the same PostgreSQL.
func springIntegrationPeer() bench.HopPeer {
	return javaPeer("spring-integration",
		"Spring Integration 7.1.2: a TCP gateway, a JDBC channel in the same PostgreSQL, pollers with transactions",
		"no subscriptions by content, no tracking; a crash between delivery and commit delivers again")
}

// camelPeer is Camel with Artemis in the same process.
func camelPeer() bench.HopPeer {
	return javaPeer("camel",
		"Camel 4.22.0: netty, a queue of Artemis 2.40.0 with a synchronized journal in the same process, transacted consumers",
		"no subscriptions by content, no tracking, no transaction with a database")
}

func javaPeer(name, short, promise string) bench.HopPeer {
	return bench.HopPeer{
		Name: name, Short: short, Promise: promise, Frames: hop.Lengths{},
		Missing: missingJava,
		Start: func(ctx context.Context, place bench.HopPlace) (func(context.Context) error, error) {
			classes, err := buildJava(ctx, name)
			if err != nil {
				return nil, err
			}
			d := place.Database
			e, err := startEngine(ctx, exec.Command("java", "-cp", classes, "peer.Main"),
				"PEER_LISTEN="+place.Listen, "PEER_TARGET="+place.Target, "PEER_DIRECTORY="+place.Folder,
				"PEER_WORKERS="+strconv.Itoa(place.Workers), "PEER_USER="+d.User, "PEER_PASSWORD="+d.Password,
				"PEER_JDBC="+jdbcAddress(place.Database))
			if err != nil {
				return nil, err
			}
			return e.stop, nil
		},
	}
}

// missingJava says how to get what engines in Java need.
func missingJava() string {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "install a JDK 17 and Maven: there is no " + tool
		}
	}
	return ""
}

// buildTimeout bounds a build, which waits for registries where packages have to be fetched.
const buildTimeout = 10 * time.Minute

// buildJava compiles an engine and gives its class path. A build of the same sources that is there is used again: Maven alone takes longer
// than a run.
func buildJava(ctx context.Context, name string) (classes string, err error) {
	folder, err := unpack(flowSources, "flow/"+name)
	if err != nil {
		return "", err
	}
	target := filepath.Join(folder, "target")
	classes = filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "dependency", "*")
	sum, err := hashOf(flowSources, "flow/"+name)
	if err != nil {
		return "", err
	}
	mark := filepath.Join(target, "built")
	if built, err := os.ReadFile(mark); err == nil && string(built) == sum {
		return classes, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, buildTimeout, fmt.Errorf("no end of Maven within %s", buildTimeout))
	defer stop()
	build := exec.CommandContext(ctx, "mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, errors.Join(err, context.Cause(ctx)), out)
	}
	if err := os.WriteFile(mark, []byte(sum), 0o600); err != nil {
		return "", fmt.Errorf("mark the build of %s: %w", name, err)
	}
	return classes, nil
}

// jdbcAddress is the address of a database for JDBC, whose driver goes to a socket of the machine by a factory.
func jdbcAddress(config *pgx.ConnConfig) string {
	port := strconv.Itoa(int(config.Port))
	if !strings.HasPrefix(config.Host, "/") {
		return "jdbc:postgresql://" + net.JoinHostPort(config.Host, port) + "/" + config.Database
	}
	return "jdbc:postgresql://localhost/" + config.Database + "?" + url.Values{
		"socketFactory":    {"org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg"},
		"socketFactoryArg": {filepath.Join(config.Host, ".s.PGSQL."+port)},
	}.Encode()
}
