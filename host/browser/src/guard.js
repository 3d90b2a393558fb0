// Stops what a mouse and a keyboard send to this document, unless the host has just let it through. So nothing gets a press or a key that a page put
// under the pointer or moved the focus to, not even a frame of another site.
(() => {
    if (globalThis.toolcrib) return;
    const PRESSES = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'dblclick', 'auxclick', 'contextmenu'];
    const KEYS = ['keydown', 'keypress', 'keyup'];
    let open = null;
    const check = event => {
        // A click that follows from a key, or from one on a label, has no pointer: what it follows from was checked.
        if (!event.isTrusted || event.type === 'click' && event.pointerType === '') return;
        if (open !== null && open(event)) return;
        event.preventDefault();
        event.stopImmediatePropagation();
    };
    const listen = () => [...PRESSES, ...KEYS, 'paste'].forEach(kind => self.addEventListener(kind, check, { capture: true }));
    // What events tell of an element: nothing of what lies in a closed tree but whose tree it is.
    const told = element => {
        const root = element.getRootNode();
        return root instanceof ShadowRoot && root.mode === 'closed' ? told(root.host) : element;
    };
    const says = element => [element.textContent, element.getAttribute('aria-label'), element.value, element.title, element.href].join('\u0000');
    const name = node => node instanceof Element ? `${node.localName} ${(node.textContent || '').trim().slice(0, 2000)}` : 'something else';
    let state = null;
    const opened = lets => {
        // A page that writes its document anew has removed them.
        listen();
        const own = state = { came: false, other: null };
        open = event => {
            if (lets(event, own.came)) return own.came = true;
            own.other ??= name(event.composedPath()[0]);
            return false;
        };
    };
    globalThis.toolcrib = {
        // Presses on this element as it is.
        press(element) {
            const before = says(element), wanted = [told(element), ...(element.labels || [])];
            opened((event, came) => {
                const path = event.composedPath();
                return PRESSES.includes(event.type) && wanted.some(node => path.includes(node)) && (came || says(element) === before);
            });
        },
        // A key that goes to this element, or to whatever has the focus here; where it moves the focus, the rest of it follows.
        key(element) {
            const wanted = element && told(element);
            opened((event, came) => KEYS.includes(event.type) && (came || !wanted || event.composedPath().includes(wanted)));
        },
        close() {
            open = null;
            return state;
        },
    };
    listen();
})();
