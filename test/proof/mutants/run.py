#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts bugs into the sources, one at a time, and runs the tests that should see them.

A bug that no test sees is a test that is missing. Bugs are made by the rules of rules.py in the
functions of the list `functions`; `by_hand` has those that no rule can say; `survivors` has those
that no test sees, with the reason. In the environment:

    ONLY=PATTERNS   those whose names fit one of the shell's patterns
    SHARE=N         one in N of each function's mutants, and at least one (16); the survivors are
                    known for this share alone
    SAMPLE=N        N of them (100), drawn by SEED; SAMPLE=all runs all
    SEED=N          of the draw (the day); the tests have this seed too (otherwise 1)
    JOBS=N          how many run at a time (two for each processor)
    CHECKED=yes     the tests have just passed: they are not run without mutants first

First the tests are run on the sources as they are: a test that fails there says nothing
about mutants, and one that takes four times as long as there, and ten seconds, hangs. For each mutant the
changed file is compiled (of a header, the files that include it), one test after the other is
linked and run, and the first that fails ends it. What does not compile, or becomes the same machine
code as the source, is no mutant. The last line is "N passed, N failed".

`run.py NAME` writes the changed source of one mutant.
"""

import concurrent.futures
import fnmatch
import glob
import hashlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True
import rules  # noqa: E402

FOLDER = os.path.dirname(__file__)
WORK = 'build/mutants'
BY_HAND_MOST = 100
TWR_TESTS = re.compile(r'redis/test_(program\w*|letters|targets|listen|top|sources_shown)$')


class Mutant:
    """A changed file: NAME, its text, the tests, and the setting of make they are built with."""

    def __init__(self, name, file, text, tests, setting=''):
        self.name, self.file, self.text = name, file, text
        self.tests, self.setting = tests, setting


def read_survivors():
    """What no test sees, by name, with the reason. The names must be there."""
    survivors = {}
    for line in lines_of('survivors'):
        if not line.startswith('\t'):
            file = line
            there = {mutant[0] for mutant in rules.mutants_in(file, open(file).read())}
            continue
        name, why = line.strip().split(' ', 1)
        if f'{file}:{name}' not in there:
            sys.exit(f'{FOLDER}/survivors: there is no mutant {file}:{name}\n0 passed, 1 failed')
        survivors[f'{file}:{name}'] = why
    return survivors


def source_of(name):
    """The changed source of the mutant, of whichever kind."""
    file, function, _ = name.split(':', 2)
    if function == 'by_hand':
        return next((mutant.text for mutant in mutants_by_hand() if mutant.name == name), None)
    text = open(file).read()
    return next((rules.apply(text, mutant) for mutant in rules.mutants_in(file, text, function)
                 if mutant[0] == name), None)


def rank(text):
    """Returns the rank in the draw. It uses the names that files had before redis/ had folders, so
    that the draw stays the one for which the survivors are known."""
    text = re.sub(r'^src/redis/(wire|client|worker|scripts)/', 'src/redis/', text)
    text = re.sub(r'^src/twr/', 'src/redis/program/', text)
    return hashlib.sha1(text.encode()).digest()


def lines_of(name):
    """The lines of a list in this folder that are no comments."""
    with open(os.path.join(FOLDER, name)) as file:
        return [line.rstrip('\n') for line in file if line.strip() and line[0] != '#']


def mutants_by_rule(share):
    """The mutants of the listed functions."""
    listed = []
    for line in re.sub(r'\n[\t ]+ ', ' ', '\n'.join(lines_of('functions'))).split('\n'):
        name, _, rest = line.strip().partition(':')
        if line.startswith('\t'):
            listed[-1][2].update({function: name for function in rest.split()})
        else:
            listed.append((name, rest.split(), {}))
    for file, tests, functions in listed:
        text = open(file).read()
        made = {}
        for mutant in rules.mutants_in(file, text):
            if mutant[0].split(':')[2] not in rules.FOR_THE_MODEL:
                made.setdefault(mutant[0].split(':')[1], []).append(mutant)
        for name, first in functions.items():
            if name not in made:
                sys.exit(f'{FOLDER}/functions: {file} has no mutants of {name}')
            chosen = sorted(made[name], key=lambda mutant: rank(mutant[0]))
            for mutant in chosen[:math.ceil(len(chosen) / share)]:
                yield Mutant(mutant[0], file, rules.apply(text, mutant),
                             [first] + [test for test in tests if test != first])


def mutants_by_hand():
    """Those of the table, in blocks, called FILE:by_hand:NAME."""
    blocks = '\n'.join(lines_of('by_hand')).split('mutant: ')[1:]
    if len(blocks) > BY_HAND_MOST:
        sys.exit(f'more than {BY_HAND_MOST} mutants by hand\n0 passed, 1 failed')
    for block in blocks:
        name, *lines = block.rstrip('\n').split('\n')
        field = {'after': '', 'with': ''}
        texts = {'-': [], '+': []}
        for line in lines:
            if line[0] in texts:
                texts[line[0]].append(line[2:])
            else:
                key, _, field_text = line.partition(': ')
                field[key] = field_text
        text = open(field['file']).read()
        begin = find_once(text, field['after'], 0, name).end() if field['after'] else 0
        old = find_once(text, '\n'.join(texts['-']), begin, name, not field['after'])
        text = text[:old.start()] + '\n'.join(texts['+']) + text[old.end():]
        yield Mutant(f'{field["file"]}:by_hand:{name}', field['file'], text, field['tests'].split(), field['with'])


def find_once(text, part, begin, name, once=True):
    """Where `part` is, with any white space for its white space; the only place, if `once`."""
    pattern = re.compile(r'\s+'.join(map(re.escape, part.split())))
    place = pattern.search(text, begin)
    if not place or once and pattern.search(text, place.end()):
        sys.exit(f'{name} does not apply: not there, or more than once: {part}')
    return place


class Build:
    """What make would do for the tests with a setting: its commands, by the file they make."""

    def __init__(self, setting, tests):
        self.folder = 'build'
        if setting.startswith('SANITIZE='):
            self.folder += '/' + setting[len('SANITIZE='):].replace(',', '-')
        self.sanitize = setting.partition('=')[2]
        targets = [f'{self.folder}/test/{test}' for test in tests]
        if any(TWR_TESTS.match(test) for test in tests):
            targets.append(f'{self.folder}/twr')
        make = ['make', f'-j{os.cpu_count()}'] + setting.split()
        environment = {key: value for key, value in os.environ.items()
                       if key not in ('MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'BUILD', 'SANITIZE')}
        if subprocess.run(make + ['-s'] + targets, env=environment).returncode:
            sys.exit('the tests do not build\n0 passed, 1 failed')
        said = subprocess.run(make + ['-nB', 'V=1'] + targets, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        self.commands = {}
        for line in said.replace('\\\n', ' ').split('\n'):
            words = shlex.split(line.partition('||')[0]) if ' -o ' in line else []
            if '-o' in words and '&&' not in words:
                self.commands[words[words.index('-o') + 1]] = words
        self.users, self.originals = {}, {}
        for made, words in self.commands.items():
            if '-c' not in words or not os.path.exists(made[:-1] + 'd'):
                continue
            for file in open(made[:-1] + 'd').read().replace('\\\n', ' ').split('\n\n')[0].split():
                self.users.setdefault(file, set()).add(made)

    def objects_of(self, program):
        """What a program is linked of; of twr, instead of the libraries, their objects."""
        objects = [word for word in self.commands[program] if word.endswith('.o')]
        if program == f'{self.folder}/twr':
            some_test = next(made for made in self.commands if not made.endswith('.o') and
                             made.startswith(f'{self.folder}/test/redis/test_'))
            objects += [word for word in self.commands[some_test]
                        if word.startswith(f'{self.folder}/src/') and word not in objects]
        return objects


    def object_of_source(self, name):
        """The object of a source as it is, compiled as the mutants are."""
        if name not in self.originals:
            made = f'{WORK}/originals/{re.sub(r"[^a-z]", "_", name)}_{threading.get_ident()}.o'
            words = list(self.commands[name])
            words[words.index('-o') + 1] = made
            run(words + MUTANT_FLAGS)
            self.originals[name] = machine_code(made)
        return self.originals[name]


class Trial:
    """A mutant's folder, where its objects and tests are made."""

    def __init__(self, mutant, build):
        self.mutant, self.build = mutant, build
        self.folder = f'{WORK}/' + re.sub(r'\W', '_', mutant.name)
        self.made = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        subprocess.run(['cp', '-al', 'src', self.folder], check=True)
        os.remove(f'{self.folder}/{mutant.file}')
        with open(f'{self.folder}/{mutant.file}', 'w') as file:
            file.write(mutant.text)
        self.changed = build.users.get(mutant.file, set())
        if mutant.file.endswith('.lua'):
            self.embed()

    def embed(self):
        """Makes the C source of the scripts."""
        source = f'{self.build.folder}/src/redis/scripts.c'
        os.makedirs(os.path.dirname(f'{self.folder}/{source}'))
        with open(f'{self.folder}/{source}', 'w') as output:
            subprocess.run(['sh', f'{self.folder}/src/redis/scripts/embed.sh'] +
                           sorted(glob.glob(f'{self.folder}/src/redis/scripts/*.lua')), stdout=output)
        self.changed = {source[:-1] + 'o'}

    def object(self, name):
        """The object that a test is linked of: the mutant's own, or the one that is there."""
        if name not in self.changed:
            return name
        if name not in self.made:
            made = f'{self.folder}/{name}'
            os.makedirs(os.path.dirname(made), exist_ok=True)
            words = list(self.build.commands[name])
            if os.path.exists(f'{self.folder}/{words[-1]}'):
                words[-1] = f'{self.folder}/{words[-1]}'
            words[1:1] = [f'-I{self.folder}/src']
            words[words.index('-o') + 1] = made
            run(words + MUTANT_FLAGS + [f'-ffile-prefix-map={self.folder}/='])
            self.made[name] = made
        return self.made[name]

    def is_same(self):
        """Whether the compiler makes the same of the mutant as of the source."""
        name = self.build.folder + '/' + self.mutant.file[:-1] + 'o'
        if not self.mutant.file.endswith('.c') or name not in self.build.commands:
            return False
        return machine_code(self.object(name)) == self.build.object_of_source(name)

    def link(self, program):
        """Returns the program of the mutant."""
        words = self.build.commands[program]
        objects = [self.object(name) for name in self.build.objects_of(program)]
        made = f'{self.folder}/{program[len(self.build.folder) + 1:]}'
        os.makedirs(os.path.dirname(made), exist_ok=True)
        rest = [word for word in words if not word.endswith(('.o', '.a'))]
        rest[rest.index('-o') + 1] = made
        first = next((i for i, word in enumerate(rest) if word.startswith('-l')), len(rest))
        run(rest[:first] + FAST_LINK + objects + rest[first:])
        return made

    def result(self):
        """'killed TEST REASON', 'survived', 'same', 'invalid': no C, or 'error REASON'."""
        for test in self.mutant.tests:
            try:
                if test == self.mutant.tests[0] and self.is_same():
                    return 'same'
                if TWR_TESTS.match(test):
                    self.link(f'{self.build.folder}/twr')
                if test == 'redis/test_program_faults':
                    self.link(f'{self.build.folder}/test/redis/twr_faults')
                program = self.link(f'{self.build.folder}/test/{test}')
            except subprocess.CalledProcessError as error:
                reason = re.search(r'error: .*', error.output or '')
                what = 'invalid' if '-c' in error.cmd else 'error'
                return f'{what} {reason.group() if reason else error.output}'
            limit = 4 * times.get((self.build.folder, test), 20) + 10
            reason = run_test(program, self.folder, self.build.sanitize, limit)
            if reason:
                return f'killed {test}: {reason}'
        return 'survived'


def run(words):
    subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def machine_code(name):
    """The bytes of an object, without what debuggers read."""
    run(['objcopy', '-g', name, name + '.bare'])
    with open(name + '.bare', 'rb') as file:
        return file.read()


def run_test(program, folder, sanitize, limit):
    """Returns why the test failed, or nothing."""
    limits = 'ulimit -c 0; ulimit -f 400000; '
    limits += 'exec setarch -R "$0"' if sanitize else 'ulimit -v 16000000; exec "$0"'
    environment = dict(os.environ, BUILD=folder, SEED=test_seed, CMOCKA_TEST_ABORT='1',
                       CMOCKA_MESSAGE_OUTPUT='STDOUT', SANITIZE=sanitize,
                       ASAN_OPTIONS='allocator_may_return_null=1',
                       TSAN_OPTIONS='allocator_may_return_null=1')
    with open(f'{folder}/log', 'w+', errors='replace') as log:
        process = subprocess.Popen(['sh', '-c', limits, program], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env=environment,
                                   start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = 'hangs'
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        if status == 0:
            return None
        log.seek(0)
        said = log.read()[-20000:]
        reason = re.search(r'\[   LINE   \] --- (\S+)|Assertion .* failed|SUMMARY: .*', said)
        return f'{reason.group() if reason else status}'


def check(build, test):
    """Runs a test without a mutant, notes how long it takes, and returns why it failed."""
    folder = f'{WORK}/control_' + re.sub(r'\W', '_', test) + build.sanitize.replace(',', '_')
    os.makedirs(f'{folder}/test/redis', exist_ok=True)
    for program in ('twr', 'test/redis/twr_faults'):
        if os.path.exists(f'{build.folder}/{program}'):
            shutil.copy(f'{build.folder}/{program}', f'{folder}/{program}')
    began = time.monotonic()
    reason = run_test(f'{build.folder}/test/{test}', folder, build.sanitize, 300)
    times[build.folder, test] = time.monotonic() - began
    shutil.rmtree(folder, ignore_errors=True)
    return f'fails without any mutant: {test}: {reason}' if reason else None


def choose():
    """The mutants to be tried; those by rule and those by hand alike."""
    share = int(os.environ.get('SHARE', 16))
    only, sample = os.environ.get('ONLY', '*').split(), os.environ.get('SAMPLE', '100')
    mutants = {mutant.name: mutant for mutant in [*mutants_by_rule(share), *mutants_by_hand()]}
    named = [fnmatch.filter(mutants, pattern) for pattern in only]
    if not all(named):
        sys.exit(f'no mutant has the name {only[named.index([])]}\n0 passed, 1 failed')
    chosen = [mutant for name, mutant in mutants.items() if any(name in names for names in named)]
    if 'ONLY' in os.environ and 'SAMPLE' not in os.environ or sample == 'all':
        return chosen
    seed = os.environ.get('SEED', str(int(time.time()) // 86400))
    return sorted(chosen, key=lambda mutant: rank(f'{seed} {mutant.name}'))[:int(sample)]


def finish(counts):
    """Says how it went."""
    tried = sum(counts.values()) - counts['none'] - counts['equal']
    rate = counts['killed'] * 100 / max(tried, 1)
    print(f'{tried + counts["equal"]} mutants, {counts["equal"]} of them no bugs:'
          f' {counts["killed"]} killed, {counts["explained"]} survive and are explained,'
          f' {counts["SURVIVED"] + counts["FAILED"]} failed; {rate:.1f} % of the bugs are seen')
    failed = counts['SURVIVED'] + counts['FAILED']
    print(f'{counts["killed"] + counts["explained"] + counts["equal"]} passed, {failed} failed')
    sys.exit(failed > 0)


def main():
    if len(sys.argv) > 1:
        sys.stdout.write(source_of(sys.argv[1]) or sys.exit(f'there is no mutant {sys.argv[1]}'))
        return
    survivors = read_survivors()
    jobs = int(os.environ.get('JOBS', 2 * os.cpu_count()))
    chosen = choose()
    shutil.rmtree(WORK + '/originals', ignore_errors=True)
    os.makedirs(WORK + '/originals')
    builds = {}
    for setting in sorted({mutant.setting for mutant in chosen}):
        tests = sorted({test for mutant in chosen if mutant.setting == setting
                        for test in mutant.tests})
        builds[setting] = Build(setting, tests)
        builds[setting].tests = tests
    times_file = f'{WORK}/seconds'
    if os.path.exists(times_file):
        for line in open(times_file):
            folder, test, seconds = line.split()
            times[folder, test] = float(seconds)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        if os.environ.get('CHECKED') != 'yes':
            pairs = [(build, test) for build in builds.values() for test in build.tests]
            wrong = [reason for reason in pool.map(lambda pair: check(*pair), pairs) if reason]
            if wrong:
                sys.exit('\n'.join(wrong) + f'\n0 passed, {len(wrong)} failed')
            with open(times_file, 'w') as file:
                for (folder, test), seconds in times.items():
                    print(folder, test, seconds, file=file)

        def judge(mutant):
            trial = Trial(mutant, builds[mutant.setting])
            began = time.monotonic()
            result = trial.result()
            shutil.rmtree(trial.folder, ignore_errors=True)
            what, why = result.partition(' ')[::2]
            name = mutant.name
            if what == 'survived' and name in survivors:
                why = survivors[name]
                what = 'equal' if why.startswith('equal') else 'explained'
            elif what == 'survived':
                what, why = 'SURVIVED', ' '.join(mutant.tests)
            elif what == 'same' or what == 'invalid' and ':by_hand:' not in name:
                what = 'none'
            elif what in ('invalid', 'error'):
                what = 'FAILED'
            with lock:
                counts[what] += 1
                if what != 'none':
                    print(f'  {what:9} {name:60} {why} ({time.monotonic() - began:.0f} s)',
                          flush=True)

        lock = threading.Lock()
        counts = dict.fromkeys(('killed', 'explained', 'equal', 'none', 'SURVIVED', 'FAILED'), 0)
        list(pool.map(judge, chosen))
    finish(counts)


times = {}
test_seed = os.environ.get('SEED', '1')
MUTANT_FLAGS = ['-O1', '-w']
# A linker that is quicker, where it is there.
FAST_LINK = ['-fuse-ld=lld'] if shutil.which('ld.lld') else []

if __name__ == '__main__':
    main()
