'use strict';
const by = id => document.getElementById(id);
const [view, stage, divider, left, right] = ['view', 'stage', 'divider', 'left', 'right'].map(by);
const images = [...stage.querySelectorAll('img')];
let place = 50;

function show() {
  images.forEach((image, i) => {
    const [onLeft, onRight] = [left, right].map(choice => Number(choice.value) === i);
    image.style.visibility = onLeft || onRight ? 'visible' : 'hidden';
    image.style.zIndex = onRight ? 1 : 0;
    image.style.clipPath = onRight && !onLeft ? `inset(0 0 0 ${place}%)` : 'none';
  });
  divider.style.left = `${place}%`;
  divider.setAttribute('aria-valuenow', Math.round(place));
  by('left-name').textContent = left.selectedOptions[0].text;
  by('right-name').textContent = right.selectedOptions[0].text;
}

function move(to) {
  place = Math.min(100, Math.max(0, to));
  show();
}

function follow(event) {
  const box = stage.getBoundingClientRect();
  move(100 * (event.clientX - box.left) / box.width);
}

// A mouse drags from anywhere. A finger drags the divider itself and elsewhere scrolls; a tap comes as a click.
stage.addEventListener('pointerdown', event => {
  if (event.button !== 0 || (event.pointerType === 'touch' && event.target !== divider)) return;
  stage.setPointerCapture(event.pointerId);
  divider.focus({ preventScroll: true });
  event.preventDefault();
  follow(event);
});
stage.addEventListener('pointermove', event => stage.hasPointerCapture(event.pointerId) && follow(event));
stage.addEventListener('click', follow);

document.addEventListener('keydown', event => {
  const step = event.shiftKey ? 10 : 1;
  const to = { ArrowLeft: place - step, ArrowRight: place + step, Home: 0, End: 100 }[event.key];
  if (to === undefined || event.ctrlKey || event.altKey || event.metaKey || event.target.closest('select')) return;
  event.preventDefault();
  move(to);
});

const zooms = [...document.querySelectorAll('[data-zoom]')];
zooms.forEach(button => button.addEventListener('click', () => {
  zooms.forEach(other => other.setAttribute('aria-pressed', other === button));
  const zoom = Number(button.dataset.zoom);
  stage.style.width = zoom ? `${zoom * stage.dataset.width}px` : '100%';
  stage.classList.toggle('enlarged', zoom > 1);
  // What is around the divider stays in sight.
  view.scrollTo(stage.offsetWidth * place / 100 - view.clientWidth / 2, (stage.offsetHeight - view.clientHeight) / 2);
}));
[left, right].forEach(choice => choice.addEventListener('change', show));
show();
