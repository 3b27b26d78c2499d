//! From the layers of a plan to those that compute.
//!
//! In a plan pictures stand channel by channel. Between convolutions the channels of a pixel stand together, so layers that only
//! move numbers are put in where that begins and ends. They have no parameters: the order of these is the plan's.

use super::Network;
use crate::layer::{
    Activation, Attention, ChannelsLast, Conv2d, Dropout, Embedding, Flatten, Function, Layer,
    Linear, Norm, Pool, Pooling, Window,
};
use crate::loss::Loss;
use crate::model::{Image, LayerSpec};
use crate::validate::{NetworkError, Result};

impl Network {
    /// The network that a plan's model means. Between convolutions the channels of a pixel stand together, so layers that move
    /// numbers are put in where that begins and ends.
    pub fn from_specs(specs: &[LayerSpec], loss: Loss) -> Result<Self> {
        let mut layers: Vec<Box<dyn Layer>> = Vec::new();
        // The picture whose pixels stand together now.
        let mut pixels: Option<(usize, usize)> = None;
        for (spec, at) in specs.iter().zip(1..) {
            let (layer, wanted) = built(spec, at)?;
            if let Some(wanted) = wanted.filter(|&wanted| wanted != pixels) {
                layers.extend(moves(pixels, wanted));
                pixels = wanted;
            }
            layers.extend(layer);
            // What comes out of a layer on pictures is a picture.
            if pixels.is_some() && wanted.is_some() {
                let shape = spec.output();
                pixels = Some((shape[0], shape[1..].iter().product()));
            }
        }
        layers.extend(moves(pixels, None));
        Self::new(layers, loss)
    }
}

/// The layers that end one order and begin another; with one pixel or one channel they are the same.
fn moves(
    from: Option<(usize, usize)>,
    to: Option<(usize, usize)>,
) -> impl Iterator<Item = Box<dyn Layer>> {
    let moved = |order: Option<(usize, usize)>| order.filter(|&(a, b)| a > 1 && b > 1);
    let end = moved(from)
        .map(|(channels, count)| -> Box<dyn Layer> { Box::new(Flatten::new(channels, count)) });
    let begin = moved(to).map(|(channels, count)| -> Box<dyn Layer> {
        Box::new(ChannelsLast::new(channels, count))
    });
    end.into_iter().chain(begin)
}

/// A layer of a plan, and the picture that must stand pixel by pixel before it: `Some(None)` if none may, and `None` if the order
/// does not matter.
type Built = (Vec<Box<dyn Layer>>, Option<Option<(usize, usize)>>);

fn built(spec: &LayerSpec, at: usize) -> Result<Built> {
    fn one(layer: impl Layer + 'static, wanted: Option<Option<(usize, usize)>>) -> Built {
        (vec![Box::new(layer)], wanted)
    }
    let window = |image: &Image, kernel: usize, stride: usize, padding: usize| {
        let window = Window {
            height: image.height,
            width: image.width,
            channels: image.channels,
            kernel,
            stride,
            padding,
        };
        match window.fits() {
            true => Ok(window),
            false => Err(NetworkError::Size {
                at,
                name: spec.kind(),
            }),
        }
    };
    let picture = |image: &Image| Some(Some((image.channels, image.height * image.width)));
    let len = |shape: &[usize]| shape.iter().product::<usize>();
    let function = |function, shape: &[usize]| one(Activation::new(function, len(shape)), None);
    Ok(match spec {
        LayerSpec::Linear {
            positions,
            inputs,
            outputs,
        } => one(
            Linear::at_positions(*inputs, *outputs, *positions),
            Some(None),
        ),
        LayerSpec::Conv2d {
            input,
            filters,
            kernel,
            stride,
            padding,
        } => {
            let window = window(input, *kernel, *stride, *padding)?;
            one(Conv2d::new(window, *filters), picture(input))
        }
        LayerSpec::MaxPool {
            input,
            kernel,
            stride,
        } => {
            let window = window(input, *kernel, *stride, 0)?;
            one(Pool::new(window, Pooling::Max), picture(input))
        }
        LayerSpec::AveragePool {
            input,
            kernel,
            stride,
        } => {
            let window = window(input, *kernel, *stride, 0)?;
            one(Pool::new(window, Pooling::Average), picture(input))
        }
        LayerSpec::Flatten { .. } => (Vec::new(), Some(None)),
        LayerSpec::Relu { shape } => function(Function::Relu, shape),
        LayerSpec::Tanh { shape } => function(Function::Tanh, shape),
        LayerSpec::Gelu { shape } => function(Function::Gelu, shape),
        LayerSpec::GroupNorm { shape, groups } => {
            let (channels, count) = (shape[0], len(&shape[1..]));
            one(
                Norm::group(count, channels, *groups),
                Some(Some((channels, count))),
            )
        }
        LayerSpec::LayerNorm { shape } => {
            let features = shape.last().copied().unwrap_or(0);
            one(
                Norm::layer(len(shape) / features.max(1), features),
                Some(None),
            )
        }
        LayerSpec::Dropout { shape, rate } => one(Dropout::new(len(shape), *rate, at as u64), None),
        LayerSpec::Embedding {
            positions,
            entries,
            features,
        } => one(Embedding::new(*positions, *entries, *features), Some(None)),
        LayerSpec::Attention {
            positions,
            features,
            heads,
        } => one(Attention::new(*positions, *features, *heads), Some(None)),
    })
}
