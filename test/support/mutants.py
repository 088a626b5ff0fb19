# SPDX-License-Identifier: MIT
"""Mutants by rule: small changes of one function of a source, each with a name that stays.

A mutant is called FILE:FUNCTION:RULE:ORDINAL, where ORDINAL counts the rule's places inside the
function from 1. The rules:

    drop      a statement that calls, assigns or leaves a loop is left out
    true      the condition of an `if` holds always
    false     the condition of an `if` or `while` never holds
    compare   < becomes <=, > becomes >=, == becomes !=, and back
    logic     && becomes ||, and back
    not       ! or ~ is left out
    one       0 becomes 1, and 1 becomes 2
    sign      + becomes -, += becomes -=, ++ becomes --, and back
    bits      & becomes |, << becomes >>, and back
    answer    `return true` becomes `return false`, TW_OK an error, and back
    acq_rel, acquire, release, relaxed
              a memory order becomes this weaker one
    unlocked  all calls that lock or unlock one mutex are left out

In a Lua script the part outside of its functions is called `main`. What stands in an assert() is
left alone. `python3 test/support/mutants.py FILE` or FILE:FUNCTION lists the mutants there, each
with its line before and after. With a mutant's name it writes the changed source.
"""

import re
import sys

C_TOKEN = re.compile(
    r'(?P<skip>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)'
    r'|(?P<text>L?"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r'|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_]\w*)'
    r'|(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])',
    re.S | re.M)
LUA_TOKEN = re.compile(
    r'(?P<skip>--[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r'|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\.\.|<=|>=|==|~=|[^\s\w])')

COMPARE = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '~=': '=='}
LOGIC = {'&&': '||', '||': '&&', 'and': 'or', 'or': 'and'}
SIGN = {'+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--', '--': '++'}
BITS = {'&': '|', '|': '&', '&=': '|=', '|=': '&=', '<<': '>>', '>>': '<<'}
ANSWER = {'true': 'false', 'false': 'true', 'TW_OK': 'TW_INVALID'}
# What an order may become.
WEAKER = {'seq_cst': ('acq_rel', 'acquire', 'release', 'relaxed'),
          'acq_rel': ('acquire', 'release', 'relaxed'),
          'acquire': ('relaxed',), 'release': ('relaxed',)}
KEYWORDS = set('''if else for while do switch case default goto return break continue struct union
    enum const static unsigned signed typedef extern volatile register sizeof'''.split())


class Token:
    def __init__(self, match):
        self.kind, self.text = match.lastgroup, match.group()
        self.start, self.end = match.span()


def tokens_of(text, start, end, pattern):
    """The tokens between two places, without comments and directives."""
    return [Token(match) for match in pattern.finditer(text, start, end)
            if match.lastgroup != 'skip']


def c_functions(text):
    """Yields the name of each function and where its body lies."""
    for match in re.finditer(r'^\{\n(.*?)^\}', text, re.S | re.M):
        head = re.split(r'\n\n|\*/\n|^[;}#][^\n]*\n', text[:match.start()], flags=re.M)[-1]
        head = re.sub(r'__attribute__\(\(.*?\)\)', '', head)
        name = re.search(r'(\w+)\(', head)
        if name:
            yield name.group(1), match.start(), match.end()


def lua_functions(text):
    """Yields the name of each function and where it lies, then each part of main."""
    rest = 0
    for match in re.finditer(r'^local function (\w+)\(.*?^end\n', text, re.S | re.M):
        yield match.group(1), match.end(1), match.end()
        yield 'main', rest, match.start()
        rest = match.end()
    yield 'main', rest, len(text)


def closing(tokens, i):
    """The index of the bracket that closes the one at `i`."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text in '([{') - (tokens[j].text in ')]}')
        if depth == 0:
            return j
    return len(tokens) - 1


def is_value(token):
    return token.kind in ('number', 'text') or token.text in (')', ']') or \
        token.kind == 'name' and token.text not in KEYWORDS | {'and', 'or', 'not', 'then'}


def words(tokens, is_lua):
    """Yields (rule, start, end, new text) for each place of the rules about one token."""
    i = 0
    for_end = hint = -1
    while i < len(tokens):
        token, text = tokens[i], tokens[i].text
        before = tokens[i - 1] if i else token
        if text in ('assert', 'STATIC_ASSERT', '_Static_assert'):
            i = closing(tokens, i + 1)
        elif text == '__builtin_expect':
            hint = closing(tokens, i + 1) - 1
        elif text == 'for' and i + 1 < len(tokens) and tokens[i + 1].text == '(':
            for_end = closing(tokens, i + 1)
        elif text in COMPARE:
            new = '~=' if is_lua and text == '==' else COMPARE[text]
            yield 'compare', token.start, token.end, new
        elif text in LOGIC:
            yield 'logic', token.start, token.end, LOGIC[text]
        elif text in ('!', 'not') or text == '~' and token.kind == 'sign':
            yield 'not', token.start, token.end, ''
        elif token.kind == 'number' and re.fullmatch('[01][uUlL]*', text) and i != hint:
            yield 'one', token.start, token.end, str(int(text[0]) + 1) + text[1:]
        elif text in SIGN and i > for_end and (is_value(before) or text in ('++', '--')):
            yield 'sign', token.start, token.end, SIGN[text]
        elif text in BITS and is_value(before):
            yield 'bits', token.start, token.end, BITS[text]
        elif before.text == 'return' and (text in ANSWER or re.match(r'TW_[A-Z_]+$', text)) and \
                tokens[i + 1].text == ';':
            yield 'answer', token.start, token.end, ANSWER.get(text, 'TW_OK')
        elif text.startswith('memory_order_'):
            for order in WEAKER.get(text[len('memory_order_'):], ()):
                yield order, token.start, token.end, 'memory_order_' + order
        i += 1


def c_statements(tokens):
    """Yields the places of the rules about conditions and statements."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ''
        if token.text in ('if', 'while') and tokens[i + 1].text == '(':
            j = closing(tokens, i + 1)
            inner = (tokens[i + 2].start, tokens[j - 1].end)
            if tokens[i + 2].text != 'true':
                if token.text == 'if':
                    yield ('true', *inner, 'true')
                yield ('false', *inner, 'false')
    depth = 0
    for i, token in enumerate(tokens[:-2]):
        depth += (token.text == '(') - (token.text == ')')
        if depth or token.text not in (';', '{', '}', ':') and not (
                token.text in ('else', 'do')):
            continue
        first, second, third = tokens[i + 1], tokens[i + 2], tokens[min(i + 3, len(tokens) - 1)]
        if first.text in ('break', 'continue', 'return') and second.text == ';':
            pass
        elif first.text in KEYWORDS or first.kind == 'name' and (
                second.kind == 'name' or second.text in (':', ',', ';') or
                second.text == '*' and third.kind == 'name' or third.text == '*' and
                second.text == '*'):
            continue
        elif first.text not in ('*', '(', '++', '--') and first.kind != 'name' or \
                first.text in ('assert', '__asm__'):
            continue
        elif first.text == '(' and second.text == 'void' and tokens[i + 5].text == ';':
            continue
        j = i + 1
        while j < len(tokens) and tokens[j].text != ';':
            j = closing(tokens, j) + 1 if tokens[j].text in '([{' else j + 1
        if j < len(tokens):
            yield 'drop', first.start, tokens[j].end, ';'


def unlocked(text, start, end):
    """Yields a change for each mutex that the function locks."""
    locks = re.findall(r'pthread_mutex_lock\((.*?)\);', text[start:end])
    for lock in dict.fromkeys(locks):
        calls = re.compile(r'pthread_mutex_(un)?lock\(' + re.escape(lock) + r'\);')
        yield 'unlocked', start, end, calls.sub(';', text[start:end])


def lua_statements(tokens, text):
    """As c_statements(); a statement is dropped that begins a line and is a call or assigns."""
    for i, token in enumerate(tokens):
        if token.text in ('if', 'elseif', 'while'):
            j = next(k for k in range(i, len(tokens)) if tokens[k].text in ('then', 'do'))
            inner = (tokens[i + 1].start, tokens[j - 1].end)
            if token.text != 'while':
                yield ('true', *inner, 'true')
            yield ('false', *inner, 'false')
        line = text[text.rfind('\n', 0, token.start) + 1:token.start]
        if line.strip() or token.kind != 'name' or i and (
                tokens[i - 1].kind == 'sign' and tokens[i - 1].text not in (')', ']', '}')) or \
                i and tokens[i - 1].text in ('and', 'or', 'not', 'return'):
            continue
        j, assigns = i, False
        if token.text in ('local', 'if', 'for', 'while', 'return', 'else', 'elseif', 'end',
                          'repeat', 'until', 'and', 'or', 'break', 'function', 'goto'):
            continue
        while j + 1 < len(tokens):
            assigns |= tokens[j].text == '='
            if tokens[j].text in ('(', '[', '{'):
                j = closing(tokens, j)
            following = tokens[j + 1]
            if '\n' in text[tokens[j].end:following.start] and not (
                    following.text in ('and', 'or', '..', '+', '-', '*', '/', '%') or
                    tokens[j].text in ('and', 'or', '..', '+', '-', '*', '/', ',', '=')):
                break
            j += 1
        yield 'drop', token.start, tokens[j].end, ''


def mutants_in(file, text, function=None):
    """A list of (name, start, end, new text) of the file, or of one function."""
    is_lua = file.endswith('.lua')
    found, counts = [], {}
    for name, start, end in (lua_functions if is_lua else c_functions)(text):
        if function and name != function:
            continue
        tokens = tokens_of(text, start, end, LUA_TOKEN if is_lua else C_TOKEN)
        places = list(words(tokens, is_lua))
        places += lua_statements(tokens, text) if is_lua else c_statements(tokens)
        places += unlocked(text, start, end)
        for rule, begin, stop, new in sorted(places, key=lambda place: place[1]):
            key = f'{file}:{name}:{rule}'
            counts[key] = counts.get(key, 0) + 1
            found.append((f'{key}:{counts[key]}', begin, stop, new))
    return found


def apply(text, mutant):
    return text[:mutant[1]] + mutant[3] + text[mutant[2]:]


def show(text, mutant):
    """The change on one line, for people."""
    begin = text.rfind('\n', 0, mutant[1]) + 1
    end = text.find('\n', mutant[2])
    old = ' '.join(text[begin:end].split())
    new = ' '.join((text[begin:mutant[1]] + mutant[3] + text[mutant[2]:end]).split())
    return f'{old}  ->  {new}'


def main():
    file, function, rule = (sys.argv[1].split(':', 2) + [None, None])[:3]
    text = open(file).read()
    mutants = mutants_in(file, text, function)
    if not rule:
        for mutant in mutants:
            print(mutant[0], show(text, mutant), sep='\t')
        return
    named = [mutant for mutant in mutants if mutant[0] == sys.argv[1]]
    sys.stdout.write(apply(text, named[0]) if named else sys.exit(f'no mutant {sys.argv[1]}'))


if __name__ == '__main__':
    main()
